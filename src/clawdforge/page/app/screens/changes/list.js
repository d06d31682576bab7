// @ts-check
// The files that a turn changed, or all turns up to it; each opens its diff.
import { html, useState } from "../../lib.js";
import { Icon } from "../../shell/icons.js";
import { Trouble, useLoad } from "../loading.js";
import { showHidden } from "../words.js";
import { loadChanges } from "./actions.js";
import { Diff } from "./diff.js";

const WORDS = { added: "new", modified: "", deleted: "deleted", renamed: "renamed" };
const SHOWN = 300;

/** @param {{id: string, turn: number, wide?: boolean, version?: unknown}} props */
export function ChangeList({ id, turn, wide = false, version = 0 }) {
  const [base, setBase] = useState(/** @type {"turn"|"first"} */ ("turn"));
  const { value, error, again } = useLoad((signal) => loadChanges(id, turn, base, signal), [id, turn, base, version]);
  const [open, setOpen] = useState(/** @type {Set<string>} */ (new Set()));
  const toggle = (/** @type {string} */ path) => {
    const next = new Set(open);
    if (!next.delete(path)) next.add(path);
    setOpen(next);
  };
  const files = value?.files ?? [];
  return html`<div class="changes">
    <div class="row">
      <div class="tabs flat grow" role="group" aria-label="Which changes">
        <button class="tab" aria-pressed=${String(base === "turn")} onClick=${() => setBase("turn")}>This turn</button>
        <button class="tab" aria-pressed=${String(base === "first")} onClick=${() => setBase("first")}>All so far</button>
      </div>
      ${files.length > 0 && html`<${Counts} files=${files} />`}
    </div>
    ${error && html`<${Trouble} error=${error} again=${again} />`}
    ${value && !files.length && html`<p class="quiet small">${value.reason ? sentence(showHidden(value.reason)) : "No file was changed."}</p>`}
    <ul class="files">
      ${files.slice(0, SHOWN).map(
        (file) => html`<li key=${file.path}>
          <button class="file-row" aria-expanded=${String(open.has(file.path))} onClick=${() => toggle(file.path)}>
            <${Icon} name=${open.has(file.path) ? "down" : "right"} />
            <${Name} file=${file} />
            ${WORDS[file.status] && html`<span class="chip">${WORDS[file.status]}</span>`}
            ${file.binary ? html`<span class="quiet tiny">binary</span>` : html`<span class="plus">+${file.added}</span><span class="minus">−${file.removed}</span>`}
          </button>
          ${open.has(file.path) && html`<${Diff} id=${id} turn=${turn} base=${base} path=${file.path} />`}
        </li>`,
      )}
    </ul>
    ${(files.length > SHOWN || value?.truncated) && html`<p class="quiet small">There are more files than are shown here.</p>`}
    ${wide && files.length > 1 && html`<button class="button" onClick=${() => setOpen(new Set(files.slice(0, 20).map((file) => file.path)))}>Open all</button>`}
  </div>`;
}

/** The end of a path matters most, so that is what stays when there is no room. @param {{file: import("./actions.js").Change}} props */
function Name({ file }) {
  const whole = showHidden(file.old_path && file.old_path !== file.path ? `${file.old_path} → ${file.path}` : file.path);
  const cut = whole.lastIndexOf("/") + 1;
  return html`<span class="grow file-name" title=${whole}><span class="folder">${whole.slice(0, cut)}</span><span class="leaf">${whole.slice(cut)}</span></span>`;
}

/** @param {{files: import("./actions.js").Change[]}} props */
function Counts({ files }) {
  const added = files.reduce((sum, file) => sum + file.added, 0);
  const removed = files.reduce((sum, file) => sum + file.removed, 0);
  return html`<span class="small quiet">${files.length} ${files.length === 1 ? "file" : "files"}</span>
    <span class="plus">+${added}</span><span class="minus">−${removed}</span>`;
}

/** @param {string} text */
const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
