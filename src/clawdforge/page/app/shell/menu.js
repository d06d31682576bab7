// @ts-check
// A button that opens a short list of things to do. Arrows move, Escape closes, the focus comes back.
import { html, useEffect, useRef, useState } from "../lib.js";
import { Icon } from "./icons.js";

/**
 * @typedef {{name: string, icon?: string, bad?: boolean, disabled?: boolean, run: () => void}} Item
 * @param {{label: string, icon?: string, items: Item[], children?: any, className?: string}} props
 */
export function Menu({ label, icon = "more", items, children, className = "icon-button" }) {
  const [place, setPlace] = useState(/** @type {any} */ (null));
  const button = useRef(/** @type {HTMLButtonElement|null} */ (null));
  const list = useRef(/** @type {HTMLDivElement|null} */ (null));
  const close = () => {
    setPlace(null);
    button.current?.focus();
  };
  const open = () => {
    const box = /** @type {HTMLElement} */ (button.current).getBoundingClientRect();
    const below = innerHeight - box.bottom > items.length * 36 + 24;
    const right = box.left > innerWidth / 2;
    setPlace({
      [below ? "top" : "bottom"]: `${below ? box.bottom + 4 : innerHeight - box.top + 4}px`,
      [right ? "right" : "left"]: `${right ? innerWidth - box.right : box.left}px`,
    });
  };
  useEffect(() => {
    if (!place) return;
    /** @type {HTMLElement|null} */ (list.current?.querySelector("button:not(:disabled)"))?.focus();
    const outside = (/** @type {Event} */ event) => !list.current?.contains(/** @type {Node} */ (event.target)) && setPlace(null);
    document.addEventListener("pointerdown", outside, true);
    return () => document.removeEventListener("pointerdown", outside, true);
  }, [place]);
  const move = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Escape" || event.key === "Tab") return event.preventDefault(), event.stopPropagation(), close();
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (!step) return;
    event.preventDefault();
    const all = [.../** @type {HTMLElement} */ (list.current).querySelectorAll("button:not(:disabled)")];
    const next = all[(all.indexOf(/** @type {any} */ (document.activeElement)) + step + all.length) % all.length];
    /** @type {HTMLElement} */ (next)?.focus();
  };
  return html`<div class="menu">
    <button class=${className} type="button" ref=${button} aria-label=${label} aria-haspopup="menu" aria-expanded=${String(!!place)} onClick=${() => (place ? close() : open())}>
      ${children || html`<${Icon} name=${icon} />`}
    </button>
    ${place &&
    html`<div class="menu-list" role="menu" aria-label=${label} style=${place} ref=${list} onKeyDown=${move}>
      ${items.map(
        (item) => html`<button class=${`menu-item ${item.bad ? "bad" : ""}`} type="button" role="menuitem" disabled=${item.disabled} key=${item.name}
          onClick=${() => (close(), item.run())}>${item.icon && html`<${Icon} name=${item.icon} />`}${item.name}</button>`,
      )}
    </div>`}
  </div>`;
}
