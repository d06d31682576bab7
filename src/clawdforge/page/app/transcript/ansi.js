// @ts-check
// Output of a terminal as nodes: colours become classes, everything else that begins with Escape is left out.

import { showDirections } from "./directions.js";

const SEQUENCE = /\u001b(?:\[([0-9;:?<=>]*)[ -/]*([@-~])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[PX^_][\s\S]*?(?:\u001b\\|$)|[()*+][\s\S]|[ -~])|\u009b[0-9;:?]*[@-~]/g;
// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;
const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

/** A program that draws a line again and again leaves the last drawing. @param {string} text */
export function lastDrawn(text) {
  if (!text.includes("\r")) return text;
  const last = (/** @type {string} */ line) => line.slice(line.lastIndexOf("\r") + 1);
  return text.split("\n").map((line) => last(line.replace(/\r+$/, ""))).join("\n");
}

/** @param {string[]} codes @param {{colour: string, bold: boolean, dim: boolean}} style */
function apply(codes, style) {
  for (let at = 0; at < codes.length; at++) {
    const code = Number(codes[at] || 0);
    if (code === 0) Object.assign(style, { colour: "", bold: false, dim: false });
    else if (code === 1) style.bold = true;
    else if (code === 2) style.dim = true;
    else if (code === 22) style.bold = style.dim = false;
    else if (code >= 30 && code <= 37) style.colour = NAMES[code - 30];
    else if (code >= 90 && code <= 97) style.colour = NAMES[code - 90];
    else if (code === 39) style.colour = "";
    else if (code === 38 || code === 48) at += codes[at + 1] === "5" ? 2 : 4;
  }
}

/** @param {string} text @returns {DocumentFragment} */
export function renderTerminal(text) {
  const nodes = document.createDocumentFragment();
  const style = { colour: "", bold: false, dim: false };
  const source = lastDrawn(text);
  let from = 0;
  const put = (/** @type {string} */ piece) => {
    const clean = showDirections(piece.replace(CONTROL, ""));
    if (!clean) return;
    const names = [style.colour && `t-${style.colour}`, style.bold && "t-bold", style.dim && "t-dim"].filter(Boolean);
    if (!names.length) return nodes.append(clean);
    const element = document.createElement("span");
    element.className = names.join(" ");
    element.textContent = clean;
    nodes.append(element);
  };
  for (const found of source.matchAll(SEQUENCE)) {
    const at = /** @type {number} */ (found.index);
    if (at > from) put(source.slice(from, at));
    if (found[2] === "m") apply((found[1] || "0").split(/[;:]/), style);
    from = at + found[0].length;
  }
  if (from < source.length) put(source.slice(from));
  return nodes;
}
