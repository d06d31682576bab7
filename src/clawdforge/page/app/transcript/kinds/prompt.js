// @ts-check
// What a person wrote: as it was typed, long ones folded.
import { html, useEffect, useState } from "../../lib.js";
import { moment } from "../../sessions/words.js";
import { showDirections } from "../directions.js";
import { nameOf } from "../file_names.js";
import { Icon } from "../../shell/icons.js";

const LONG = 1200;
const LINES = 14;

/** @param {{file: any}} props a token, or what has a name */
function FileChip({ file }) {
  const [name, setName] = useState(typeof file === "string" ? "" : String(file?.name));
  useEffect(() => {
    if (typeof file === "string") nameOf(file).then(setName);
  }, [file]);
  return html`<li class="chip"><${Icon} name="file" /><span class="cut">${showDirections(name || "attached file")}</span></li>`;
}

/** @param {{row: import("../rows.js").Row}} props */
export function PromptRow({ row }) {
  const [open, setOpen] = useState(row.unfolded === true);
  const long = row.raw.length > LONG || row.raw.split("\n", LINES + 1).length > LINES;
  const shown = open || !long ? row.raw : row.raw.split("\n", LINES).join("\n").slice(0, LONG);
  return html`<div class="prompt">
    <h2 class="out-of-sight">You${row.ts ? `, ${moment(row.ts)}` : ""}</h2>
    <div class="wrap words">${showDirections(shown)}${long && !open ? "…" : ""}</div>
    ${long && html`<button class="link" onClick=${() => setOpen(!open)}>${open ? "Show less" : "Show all"}</button>`}
    ${row.files?.length > 0 &&
    html`<ul class="files" aria-label="Attached files">
      ${row.files.map((/** @type {any} */ file) => html`<${FileChip} file=${file} key=${file} />`)}
    </ul>`}
  </div>`;
}
