// @ts-check
// The screen of one session: its head, the transcript, the composer.
import { html } from "../../lib.js";
import { current } from "../../store.js";

/** @param {{route: import("../../store.js").Route}} props */
export default function Chat({ route }) {
  return html`<header class="head"><h1 class="grow cut">${current.value?.title || route.parts[0]}</h1></header>
    <div class="scroll"></div>`;
}
