// @ts-check
// Changed lines of a file. Screens beside the transcript use it as well.
import { html } from "../../lib.js";
import { showDirections } from "../directions.js";

/** @type {Record<string, string>} */
const LINES = { "+": "added", "-": "removed", "…": "gap" };

/** @param {{path: string, lines: import("../diff.js").Line[], added: number, removed: number}} props */
export function DiffView({ path, lines, added, removed }) {
  return html`<figure class="edit">
    <figcaption><span class="mono grow wrap">${showDirections(path)}</span><span class="counts"><span class="added">+${added}</span> <span class="removed">−${removed}</span></span></figcaption>
    <div class="edit-lines" tabindex="0" role="region" aria-label=${`Changes of ${path}`}>
      ${lines.map(
        (line, at) => html`<div key=${at} class=${`edit-line ${LINES[line.kind] || ""}`}>
          <span class="edit-number" aria-hidden="true">${line.new ?? line.old ?? ""}</span><span class="edit-sign">${line.kind === "…" ? "" : line.kind}</span><span class="edit-code">${line.kind === "…" ? line.text || "…" : showDirections(line.text) || " "}</span>
        </div>`,
      )}
    </div>
  </figure>`;
}
