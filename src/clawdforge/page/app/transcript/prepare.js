// @ts-check
// Makes the nodes of a closed block, once; the newest few hundred are kept for when they are shown again.
import { renderMarkdown } from "./markdown.js";

const KEPT = 400;
/** @type {Set<import("./rows.js").Row>} */
const recent = new Set();

/** @param {import("./rows.js").Row} row */
export function prepare(row) {
  if (row.kind !== "text" || !row.closed || row.nodes?.raw === row.raw) return;
  row.nodes = { raw: row.raw, element: render(row) };
  recent.delete(row);
  recent.add(row);
  for (const old of recent) {
    if (recent.size <= KEPT) break;
    if (!old.element) old.nodes = null;
    recent.delete(old);
  }
}

/** @param {import("./rows.js").Row} row */
function render(row) {
  const element = document.createElement("div");
  element.className = "md";
  element.append(renderMarkdown(row.lead + row.raw));
  return element;
}

/** The nodes of a row; made now where they are missing. @param {import("./rows.js").Row} row @returns {HTMLElement} */
export function nodesOf(row) {
  prepare(row);
  return row.nodes.element;
}
