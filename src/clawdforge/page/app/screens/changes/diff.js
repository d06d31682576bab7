// @ts-check
// One file's diff, line by line, with the numbers of both sides.
import { html, useMemo, useState } from "../../lib.js";
import { Trouble, useLoad } from "../loading.js";
import { showHidden } from "../words.js";
import { loadDiff } from "./actions.js";
import { readPatch } from "./patch.js";

/** @type {Record<string, string>} */
const SIGNS = { add: "+", del: "−", same: " ", hunk: "", note: "" };
const STEP = 1000;

/** @param {{id: string, turn: number, base: "turn"|"first", path: string}} props */
export function Diff({ id, turn, base, path }) {
  const { value, error, again } = useLoad((signal) => loadDiff(id, turn, base, path, signal), [id, turn, base, path]);
  const [most, setMost] = useState(STEP);
  const patch = useMemo(() => readPatch(value?.diff || "", most), [value, most]);
  if (error) return html`<${Trouble} error=${error} again=${again} />`;
  if (!value) return html`<p class="diff-note" aria-busy="true">Loading…</p>`;
  if (value.reason) return html`<p class="diff-note">${showHidden(value.reason)}.</p>`;
  if (value.binary) return html`<p class="diff-note">A binary file. Its content is not shown.</p>`;
  if (!patch.lines.length) return html`<p class="diff-note">Its content is the same; its name or its rights have changed.</p>`;
  return html`<div class="diff mono" tabindex="0" role="region" aria-label=${`Changes of ${showHidden(path)}`}>
    <table>
      <tbody>
        ${patch.lines.map(
          (line) => html`<tr class=${line.kind}>
            <td class="number">${line.old ?? ""}</td>
            <td class="number">${line.new ?? ""}</td>
            <td class="sign">${SIGNS[line.kind]}</td>
            <td class="line">${showHidden(line.text)}</td>
          </tr>`,
        )}
      </tbody>
    </table>
    ${patch.left > 0 && html`<button class="button" onClick=${() => setMost(most + STEP)}>Show more: ${patch.left} lines are left</button>`}
    ${value.truncated && !patch.left && html`<p class="diff-note">The diff is longer than the server shows. What is missing stands in the workspace.</p>`}
  </div>`;
}
