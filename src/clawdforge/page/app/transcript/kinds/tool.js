// @ts-check
// A tool call: one line that says what and how it went; opened, its input, output, changes and terminal.
import { html, useLayoutEffect, useRef, useState } from "../../lib.js";
import { lasted } from "../../sessions/words.js";
import { Icon } from "../../shell/icons.js";
import { renderTerminal } from "../ansi.js";
import { compare } from "../diff.js";
import { showDirections } from "../directions.js";
import { DiffView } from "./diff_view.js";

/** @type {Record<string, string>} */
const ICONS = { read: "read", edit: "edit", delete: "trash", move: "move", search: "search", execute: "terminal", think: "think", fetch: "globe" };
/** @type {Record<string, string>} */
const WORDS = { pending: "waiting", in_progress: "running", completed: "done", failed: "failed", ended: "cut off" };
const MAX_SHOWN = 64 * 1024;

/** @param {unknown} value */
const asText = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "");

/** Text of a terminal, escapes shown safely. @param {{text: string, label: string}} props */
function Terminal({ text, label }) {
  const place = useRef(/** @type {HTMLElement|null} */ (null));
  const cut = text.length > MAX_SHOWN;
  useLayoutEffect(() => place.current?.replaceChildren(renderTerminal(cut ? text.slice(-MAX_SHOWN) : text)), [text]);
  return html`<div class="part"><h4>${label}</h4>
    ${cut && html`<p class="hint">The last ${MAX_SHOWN / 1024} KB of ${Math.round(text.length / 1024)} KB.</p>`}
    <pre class="terminal" tabindex="0" role="region" aria-label=${label} ref=${place}></pre>
  </div>`;
}

/** @param {any} part of a call's content */
function Part({ part }) {
  if (part?.type === "diff") return html`<${DiffView} path=${String(part.path || "")} ...${compare(String(part.oldText ?? ""), String(part.newText ?? ""))} />`;
  const content = part?.type === "content" ? part.content : part;
  if (typeof content?.text === "string") return html`<${Terminal} text=${content.text} label="Output" />`;
  if (content?.type === "terminal" || part?.type === "terminal") return html`<p class="hint">Ran in a terminal of the server.</p>`;
  if (content?.type === "resource_link") return html`<p class="mono wrap">${showDirections(String(content.uri || ""))}</p>`;
  return html`<${Terminal} text=${asText(part)} label="Output" />`;
}

/** How many lines came and went, where the call says it. @param {any} call */
function changed(call) {
  const diffs = (Array.isArray(call.content) ? call.content : []).filter((/** @type {any} */ part) => part?.type === "diff");
  if (!diffs.length) return null;
  let [added, removed] = [0, 0];
  for (const part of diffs) {
    const found = compare(String(part.oldText ?? ""), String(part.newText ?? ""));
    [added, removed] = [added + found.added, removed + found.removed];
  }
  return html`<span class="counts"><span class="added">+${added}</span> <span class="removed">−${removed}</span></span>`;
}

/** @param {any} call */
function Inside({ call }) {
  const input = call.input && typeof call.input === "object" && !Object.keys(call.input).length ? null : call.input;
  const command = typeof input?.command === "string" ? input.command : null;
  const parts = Array.isArray(call.content) ? call.content : [];
  const places = Array.isArray(call.locations) ? call.locations : [];
  return html`<div class="inside">
    ${places.length > 0 && html`<p class="mono small wrap quiet">${showDirections(places.map((/** @type {any} */ at) => `${at?.path ?? ""}${at?.line ? `:${at.line}` : ""}`).join("\n"))}</p>`}
    ${input && html`<${Terminal} text=${command ? `$ ${command}` : asText(input)} label="Input" />`}
    ${parts.map((/** @type {any} */ part, /** @type {number} */ at) => html`<${Part} part=${part} key=${at} />`)}
    ${!parts.length && call.output !== undefined && html`<${Terminal} text=${asText(call.output)} label="Output" />`}
    ${!input && !parts.length && call.output === undefined && html`<p class="hint">The agent told nothing more about this.</p>`}
  </div>`;
}

/** @param {{row: import("../rows.js").Row}} props */
export function ToolRow({ row }) {
  void row.rev.value;
  const call = row.call;
  const isEdit = Array.isArray(call.content) && call.content.some((/** @type {any} */ part) => part?.type === "diff");
  const [open, setOpen] = useState(/** @type {boolean|null} */ (null));
  const shown = open ?? (isEdit && row.group.end === null);
  const took = call.began && call.ended ? lasted(call.ended - call.began) : "";
  return html`<details class=${`tool ${call.status}`} open=${shown}>
    <summary onClick=${(/** @type {Event} */ event) => (event.preventDefault(), setOpen(!shown))}>
      <${Icon} name=${ICONS[call.kind] || "tool"} />
      <span class="grow name">${showDirections(String(call.title || call.kind || call.id))}</span>
      ${changed(call)}
      <span class="state">${WORDS[call.status] || String(call.status)}${took ? ` · ${took}` : ""}</span>
    </summary>
    ${shown && html`<${Inside} call=${call} />`}
  </details>`;
}
