// @ts-check
// A snippet of a found message: the found words stand between « and ».
import { html } from "../../lib.js";
import { showHidden } from "../words.js";

/** @param {string} text @returns {{text: string, found: boolean}[]} */
export function readSnippet(text) {
  const parts = [];
  let at = 0;
  for (const match of text.matchAll(/«([^«»]*)»/g)) {
    if (match.index > at) parts.push({ text: text.slice(at, match.index), found: false });
    parts.push({ text: match[1], found: true });
    at = match.index + match[0].length;
  }
  if (at < text.length) parts.push({ text: text.slice(at), found: false });
  return parts;
}

/** The words of a snippet that were found, each once, as an address can carry them. @param {string} text */
export function foundWords(text) {
  const found = readSnippet(text).filter((part) => part.found);
  return [...new Set(found.map((part) => part.text.toLowerCase()))].join(" ").slice(0, 200);
}

/** @param {{text: string}} props */
export function Snippet({ text }) {
  return html`<p class="snippet wrap">
    ${readSnippet(text).map((part) => (part.found ? html`<mark>${showHidden(part.text)}</mark>` : showHidden(part.text)))}
  </p>`;
}
