// @ts-check
// The small kinds: thinking, plan, note, summary, picture.
import { html, useEffect, useState } from "../../lib.js";
import { Icon } from "../../shell/icons.js";
import { showDirections } from "../directions.js";
import { renderLong } from "../markdown.js";

const MAX_THOUGHTS = 64 * 1024;
const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/** @param {{row: import("../rows.js").Row}} props */
export function ThinkingRow({ row }) {
  void row.rev.value;
  const [open, setOpen] = useState(false);
  return html`<details class="thinking" open=${open} onToggle=${(/** @type {any} */ event) => setOpen(event.target.open)}>
    <summary><${Icon} name="think" />Thinking</summary>
    ${open && html`<div class="wrap">${showDirections(row.raw.slice(-MAX_THOUGHTS))}</div>`}
  </details>`;
}

/** @type {Record<string, string>} */
const MARKS = { completed: "done", in_progress: "under way", pending: "to do" };

/** @param {{row: import("../rows.js").Row}} props */
export function PlanRow({ row }) {
  void row.rev.value;
  const entries = row.entries.filter((/** @type {any} */ entry) => entry && typeof entry === "object");
  const done = entries.filter((/** @type {any} */ entry) => entry.status === "completed").length;
  return html`<section class="card plan" aria-label="Plan">
    <h3><${Icon} name="plan" />Plan <span class="quiet">${done} of ${entries.length}</span></h3>
    <ol>${entries.map(
      (/** @type {any} */ entry, /** @type {number} */ at) => html`<li key=${at} class=${String(entry.status || "")}>
        <span class="mark" aria-label=${MARKS[entry.status] || "to do"}></span><span class="wrap">${showDirections(String(entry.content || ""))}</span>
      </li>`,
    )}</ol>
  </section>`;
}

/** @param {{row: import("../rows.js").Row}} props */
export const NoteRow = ({ row }) => html`<p class=${`remark wrap ${row.tone}`}>${showDirections(row.text)}</p>`;

/** @param {{row: import("../rows.js").Row}} props */
export function SummaryRow({ row }) {
  return html`<details class="card summary"><summary>Summary of what came before</summary>
    <div class="md" ref=${(/** @type {HTMLElement|null} */ element) => element && !element.firstChild && element.append(renderLong(row.raw))}></div>
  </details>`;
}

/** A picture that the agent sent along; never one from elsewhere. @param {{row: import("../rows.js").Row}} props */
export function ImageRow({ row }) {
  const [url, setUrl] = useState("");
  useEffect(() => {
    const made = toUrl(row.mime, row.data);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, []);
  return url ? html`<img class="picture" src=${url} alt="A picture from the agent" loading="lazy" />` : html`<p class="remark">A picture that cannot be shown.</p>`;
}

/** @param {string} mime @param {string} data in base64 */
function toUrl(mime, data) {
  if (!PICTURES.has(mime)) return "";
  try {
    const bytes = Uint8Array.from(atob(data), (char) => char.charCodeAt(0));
    return URL.createObjectURL(new Blob([bytes], { type: mime }));
  } catch {
    return "";
  }
}
