// @ts-check
// A dialog that asks one thing, and gives the focus back when it closes.
import { html, render, useEffect, useRef } from "../lib.js";

/** @param {{title: string, onClose: () => void, children: any}} props */
export function Dialog({ title, onClose, children }) {
  const element = useRef(/** @type {HTMLDialogElement|null} */ (null));
  useEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    return () => before instanceof HTMLElement && before.focus();
  }, []);
  return html`<dialog ref=${element} aria-label=${title} onClose=${onClose} onCancel=${onClose}>
    ${children}
  </dialog>`;
}

/**
 * Ask for a yes, a line of text, or neither. Resolves with true, the text, or null.
 * @param {{title: string, text?: string, yes: string, bad?: boolean, value?: string, name?: string}} ask
 * @returns {Promise<string|true|null>}
 */
export function ask(ask) {
  const place = document.createElement("div");
  document.body.append(place);
  return new Promise((resolve) => {
    const done = (/** @type {string|true|null} */ answer) => {
      render(null, place);
      place.remove();
      resolve(answer);
    };
    const submit = (/** @type {SubmitEvent} */ event) => {
      event.preventDefault();
      const form = /** @type {HTMLFormElement} */ (event.target);
      done(ask.value === undefined ? true : String(new FormData(form).get("value")));
    };
    render(
      html`<${Dialog} title=${ask.title} onClose=${() => done(null)}>
        <form onSubmit=${submit}>
          <h2>${ask.title}</h2>
          ${ask.text && html`<p class="wrap">${ask.text}</p>`}
          ${ask.value !== undefined &&
          html`<label class="field"><span class="name">${ask.name}</span><input type="text" name="value" value=${ask.value} /></label>`}
          <div class="buttons">
            <button type="button" class="button" onClick=${() => done(null)}>Cancel</button>
            <button class=${`button ${ask.bad ? "bad" : "main"}`}>${ask.yes}</button>
          </div>
        </form>
      <//>`,
      place,
    );
  });
}
