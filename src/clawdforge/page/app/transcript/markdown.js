// @ts-check
// The only place where text becomes markup: marked reads it, DOMPurify cleans it, and nodes come out.
import { Marked } from "../../vendor/marked.js";
import "../../vendor/dompurify.js";
import { splitBlocks } from "./blocks.js";
import { codeBlock } from "./code.js";
import { showDirections } from "./directions.js";

const purify = /** @type {any} */ (globalThis).DOMPurify;
const LINKS = /^(?:https?:|mailto:)/i;
const MAX_MARKDOWN = 40 * 1024;

const CLEAN = {
  ALLOWED_TAGS: ["p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "em", "strong", "del", "code", "pre", "blockquote",
    "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "a", "input", "span", "sup", "sub"],
  ALLOWED_ATTR: ["href", "title", "class", "start", "align", "type", "checked", "disabled"],
  ALLOWED_URI_REGEXP: LINKS,
  ADD_URI_SAFE_ATTR: ["align", "start"], // without this they would have to be links too
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

/** @param {string} text */
const escape = (text) =>
  text.replace(/[&<>"']/g, (found) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" })[found] || found);

/** @param {string} href @param {string} shown markup that is clean already @param {string} [title] */
function anchor(href, shown, title) {
  if (!LINKS.test(href)) return shown;
  return `<a href="${escape(href)}"${title ? ` title="${escape(title)}"` : ""}>${shown}</a>`;
}

const marked = new Marked({
  gfm: true,
  breaks: false,
  renderer: {
    html: ({ text }) => escape(text),
    link({ href, title, tokens }) {
      return anchor(href, this.parser.parseInline(tokens), title || "");
    },
    image: ({ href, title, text }) => anchor(href, `picture: ${escape(text || href)}`, title || "") || escape(text),
    code: ({ text, lang }) => `<pre title="${escape((lang || "").split(/\s/)[0])}"><code>${escape(text)}</code></pre>`,
  },
});

// What means something wherever it stands: emphasis, code, links, tags, entities, tables, addresses, hard breaks.
const SIGNS = /[\\`*_[\]<>|~&@\t\r]|:\/\/|www\.| \n/i;
// What means something where a line begins: an empty line, indented code, lists, headings, rules.
const BEGINNINGS = /^(?:[ \n]|[-+#=]|\d{1,9}[.)])/m;

/** Whether all that markdown makes of it is a paragraph: most of what is said needs no reader, and costs a tenth then. @param {string} text */
export const isOneParagraph = (text) => !SIGNS.test(text) && /\S/.test(text) && !BEGINNINGS.test(text.trimEnd());

/** @param {string} text */
function paragraph(text) {
  const nodes = document.createDocumentFragment();
  const element = document.createElement("p");
  element.textContent = text;
  nodes.append(element);
  return nodes;
}

/** Markdown as nodes. @param {string} text @returns {DocumentFragment} */
export function renderMarkdown(text) {
  const shown = showDirections(text.replaceAll("\0", "\uFFFD"));
  if (isOneParagraph(shown)) return paragraph(shown.trimEnd());
  if (text.length > MAX_MARKDOWN) return plain(shown);
  let nodes;
  try {
    nodes = /** @type {DocumentFragment} */ (purify.sanitize(marked.parse(shown), CLEAN));
  } catch {
    return plain(shown); // nested too deeply to be read
  }
  for (const link of nodes.querySelectorAll("a")) {
    if (!LINKS.test(link.getAttribute("href") || "")) link.removeAttribute("href");
    link.target = "_blank";
    link.rel = "noopener noreferrer";
  }
  for (const box of nodes.querySelectorAll("input")) {
    box.type = "checkbox";
    box.disabled = true;
    box.setAttribute("aria-label", box.checked ? "done" : "to do");
  }
  for (const table of nodes.querySelectorAll("table")) {
    const frame = document.createElement("div");
    frame.className = "table-frame";
    frame.tabIndex = 0;
    frame.setAttribute("role", "region");
    frame.setAttribute("aria-label", "Table");
    table.replaceWith(frame);
    frame.append(table);
  }
  for (const pre of nodes.querySelectorAll("pre")) {
    pre.replaceWith(codeBlock(pre.textContent || "", pre.title));
  }
  return nodes;
}

/** A text of any length, block by block: what takes long in one does not take the square of it. @param {string} text */
export function renderLong(text) {
  const nodes = document.createDocumentFragment();
  for (const { raw, lead } of splitBlocks(text)) nodes.append(renderMarkdown(lead + raw));
  return nodes;
}

/** @param {string} text */
function plain(text) {
  const nodes = paragraph(text);
  nodes.firstElementChild?.classList.add("wrap");
  return nodes;
}
