// @ts-check
// Short messages at the edge of the page. Nothing depends on being read here.
import { html } from "../lib.js";
import { dismiss, notices } from "../store.js";
import { Icon } from "./icons.js";

export function Notices() {
  return html`<div class="notices" role="log" aria-live="polite" aria-label="Messages of the page">
    ${notices.value.map(
      (notice) => html`<div class=${`notice ${notice.kind}`} key=${notice.id}>
        <span class="grow">${notice.text}</span>
        <button class="icon-button" aria-label="Dismiss" onClick=${() => dismiss(notice.id)}><${Icon} name="close" /></button>
      </div>`,
    )}
  </div>`;
}
