// @ts-check
// A block of the answer. A closed one is nodes that were made once; the open one is drawn again as it grows, but not too often.
import { html, useEffect, useLayoutEffect, useRef } from "../../lib.js";
import { showDirections } from "../directions.js";
import { renderMarkdown } from "../markdown.js";
import { nodesOf } from "../prepare.js";

const MAX_OPEN = 4096;
const LEAST_MS = 60;
const SHARE = 6;

/** @param {HTMLElement} place @param {import("../rows.js").Row} row @returns {number} what it cost in ms */
function draw(place, row) {
  const began = performance.now();
  if (row.closed) {
    const nodes = nodesOf(row);
    if (place.firstChild !== nodes) place.replaceChildren(nodes);
  } else if (row.inFence || row.raw.length > MAX_OPEN) {
    const text = row.inFence ? (row.lead + row.raw).replace(/^[^\n]*\n?/, "") : row.raw;
    let code = place.querySelector(":scope > pre.open > code");
    if (!code) {
      const pre = document.createElement("pre");
      pre.className = row.inFence ? "open" : "open prose";
      code = document.createElement("code");
      pre.append(code);
      place.replaceChildren(pre);
    }
    code.textContent = showDirections(text);
  } else {
    const element = document.createElement("div");
    element.className = "md";
    element.append(renderMarkdown(row.lead + row.raw));
    place.replaceChildren(element);
  }
  return performance.now() - began;
}

/** @param {{row: import("../rows.js").Row}} props */
export function TextRow({ row }) {
  const place = useRef(/** @type {HTMLElement|null} */ (null));
  const last = useRef({ at: 0, cost: 0, timer: /** @type {any} */ (0) });
  const rev = row.rev.value;
  useLayoutEffect(() => {
    const state = last.current;
    const now = performance.now();
    const wait = row.closed || !state.at ? 0 : state.at + Math.max(LEAST_MS, SHARE * state.cost) - now;
    clearTimeout(state.timer);
    const paint = () => {
      if (!place.current) return;
      state.cost = draw(place.current, row);
      state.at = performance.now();
    };
    if (wait <= 0) paint();
    else state.timer = setTimeout(paint, wait);
  }, [rev]);
  useEffect(() => () => clearTimeout(last.current.timer), []);
  return html`<div class="text" ref=${place}></div>`;
}
