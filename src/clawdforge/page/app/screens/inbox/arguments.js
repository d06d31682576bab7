// @ts-check
// What an agent asks for, whole: every argument, wrapped and never cut, with nothing that could hide in it.
import { html } from "../../lib.js";
import { showHidden } from "../words.js";

/** What is asked, to its end: `tool` is cut where names are listed. @param {any} permission */
export function wholeName(permission) {
  const title = permission.request?.toolCall?.title;
  return showHidden(typeof title === "string" && title ? title : permission.tool);
}

/** @param {{permission: any}} props */
export function Arguments({ permission }) {
  const call = permission.request?.toolCall ?? {};
  const parts = [];
  if (call.rawInput !== undefined && call.rawInput !== null) parts.push(...inputParts(call.rawInput));
  for (const place of list(call.locations))
    parts.push({ name: "file", text: place?.line ? `${place.path}:${place.line}` : String(place?.path) });
  for (const content of list(call.content)) parts.push(contentPart(content));
  for (const [name, value] of Object.entries(permission.request ?? {})) {
    if (!["toolCall", "options", "sessionId"].includes(name)) parts.push({ name, text: asText(value) });
  }
  if (!parts.length) return null;
  return html`<dl class="arguments">
    ${parts.map(
      (part) => html`<div>
        <dt>${showHidden(part.name)}</dt>
        <dd class="wrap mono">${showHidden(part.text)}</dd>
      </div>`,
    )}
  </dl>`;
}

/** @param {unknown} value @returns {any[]} */
const list = (value) => (Array.isArray(value) ? value : []);

/** @param {unknown} value */
function asText(value) {
  return typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? String(value));
}

/** @param {any} input */
function inputParts(input) {
  if (typeof input !== "object" || Array.isArray(input)) return [{ name: "input", text: asText(input) }];
  return Object.entries(input).map(([name, value]) => ({ name, text: asText(value) }));
}

/** @param {any} content */
function contentPart(content) {
  if (content?.type === "diff") {
    const before = content.oldText ? `was:\n${content.oldText}\n\nwill be:\n` : "";
    return { name: `change ${content.path}`, text: `${before}${content.newText ?? ""}` };
  }
  if (content?.type === "content" && content.content?.type === "text")
    return { name: "text", text: asText(content.content.text) };
  return { name: String(content?.type ?? "content"), text: asText(content) };
}
