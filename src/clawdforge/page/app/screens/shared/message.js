// @ts-check
// One message of a shared transcript: who said it, the words, and folded below them what was thought and done.
import { html, useLayoutEffect, useRef } from "../../lib.js";
import { showDirections } from "../../transcript/directions.js";
import { renderLong } from "../../transcript/markdown.js";

/** @typedef {{seq: number, role: string, content: string, thinking: string, truncated: boolean,
 *   tool_calls: Array<{toolCallId?: string, title?: unknown, kind?: unknown, status?: unknown}>}} Message */

const SPEAKERS = /** @type {Record<string, string>} */ ({ assistant: "Agent", tool: "Tool", system: "System" });

/** @param {{message: Message}} props */
export function SharedMessage({ message }) {
  if (message.role === "user") {
    return html`<section class="prompt"><h2 class="out-of-sight">Prompt</h2><div class="wrap words">${showDirections(message.content)}</div></section>`;
  }
  return html`<section>
    <h2 class="out-of-sight">${SPEAKERS[message.role] || "Message"}</h2>
    ${message.thinking && html`<details><summary>Thinking</summary><div class="wrap hint">${showDirections(message.thinking)}</div></details>`}
    ${message.tool_calls.length > 0 && html`<details><summary>${count(message.tool_calls.length)}</summary><ul>${message.tool_calls.map(toolLine)}</ul></details>`}
    <${Words} text=${message.content} />
    ${message.truncated && html`<p class="hint">A part of this answer was too long to be kept.</p>`}
  </section>`;
}

/** @param {number} calls */
const count = (calls) => (calls === 1 ? "1 tool call" : `${calls} tool calls`);

/** @param {Message["tool_calls"][number]} found @param {number} index */
const toolLine = (found, index) => html`<li class="wrap" key=${index}>${word(found.title) || word(found.kind) || "tool"} <span class="hint">${word(found.status)}</span></li>`;

/** An agent may send anything. @param {unknown} value */
const word = (value) => (typeof value === "string" ? showDirections(value) : "");

/** @param {{text: string}} props */
function Words({ text }) {
  const place = useRef(/** @type {HTMLElement|null} */ (null));
  useLayoutEffect(() => place.current?.replaceChildren(renderLong(text)), [text]);
  return html`<div class="md" ref=${place}></div>`;
}
