// @ts-check
// A block of code: its language, a button that copies it, and its colours.
import { colour } from "./highlight.js";

const MAX_COLOURED = 64 * 1024;

/** @param {string} text @param {string} language @returns {HTMLElement} */
export function codeBlock(text, language) {
  const figure = document.createElement("figure");
  figure.className = "code";
  const head = document.createElement("figcaption");
  const name = document.createElement("span");
  name.textContent = language;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.setAttribute("aria-label", "Copy the code");
  button.addEventListener("click", () => copyText(text, button));
  head.append(name, button);
  const pre = document.createElement("pre");
  pre.tabIndex = 0;
  pre.setAttribute("aria-label", language ? `Code, ${language}` : "Code");
  pre.setAttribute("role", "region");
  const code = document.createElement("code");
  if (text.length <= MAX_COLOURED) code.append(colour(text.replace(/\n$/, ""), language));
  else code.textContent = text;
  pre.append(code);
  figure.append(head, pre);
  return figure;
}

/** Copy, and say so on the button for a moment. @param {string} text @param {HTMLElement} [button] */
export async function copyText(text, button) {
  const done = await writeClipboard(text);
  if (!button) return done;
  const before = button.textContent;
  button.textContent = done ? "Copied" : "Not allowed";
  setTimeout(() => (button.textContent = before), 1500);
  return done;
}

/** The clipboard is closed to pages on plain HTTP; a selection still works there. @param {string} text */
async function writeClipboard(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "out-of-sight";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
