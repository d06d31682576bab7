// @ts-check
// One request of an agent: whose it is, all that it says, and the buttons that answer it.
import { html, useState } from "../../lib.js";
import { Icon } from "../../shell/icons.js";
import { link } from "../../shell/router.js";
import { useClock } from "../loading.js";
import { sayAgo, sayLeft, showHidden } from "../words.js";
import { decide, forget, putOff } from "./actions.js";
import { Arguments, wholeName } from "./arguments.js";
import { sayScope } from "./scope.js";

/** @param {{permission: import("./actions.js").Permission, folded: boolean}} props */
export function Card({ permission, folded }) {
  const now = useClock();
  const [busy, setBusy] = useState(false);
  const answer = (/** @type {"allow_once"|"allow_always"|"reject"} */ decision) => async () => {
    setBusy(true);
    await decide(permission, decision);
    setBusy(false);
  };
  const name = `ask-${permission.permission_id}`;
  const tool = wholeName(permission);
  return html`<li class="ask card" aria-labelledby=${name} data-permission=${permission.permission_id}>
    <div class="ask-head small">
      <span class="dot waiting"></span>
      <a class="cut" href=${link("s", permission.session_id)}>${showHidden(permission.title || "Untitled session")}</a>
      <span class="quiet">${showHidden(permission.agent)} · ${sayAgo(permission.requested_at, now)}</span>
      ${permission.expires_at && html`<span class="quiet">expires in ${sayLeft(permission.expires_at, now)}</span>`}
    </div>
    <h2 id=${name} class="wrap">${tool} ${permission.kind && html`<span class="chip">${showHidden(permission.kind)}</span>`}</h2>
    ${!folded && html`<${Arguments} permission=${permission} />`}
    <div class="ask-buttons">
      <button class="button main" disabled=${busy} onClick=${answer("allow_once")}>Allow once</button>
      <button class="button" disabled=${busy} onClick=${answer("allow_always")} aria-describedby=${`${name}-scope`}>Always in this session</button>
      <button class="button bad" disabled=${busy} onClick=${answer("reject")}>Refuse</button>
      <button class="button bare" aria-expanded=${String(!folded)} onClick=${() => putOff(permission)}>${folded ? "Show" : "Later"}</button>
    </div>
    ${!folded && html`<p class="hint wrap" id=${`${name}-scope`}>${sayScope(permission)}</p>`}
  </li>`;
}

/** @param {{permission: import("./actions.js").Permission, words: string}} props */
export function Settled({ permission, words }) {
  return html`<li class="ask-settled card small" data-settled=${permission.permission_id}>
    <${Icon} name="check" />
    <span class="grow wrap"><strong>${showHidden(permission.tool)}</strong> ${words}.</span>
    <a href=${link("s", permission.session_id)}>Open</a>
    <button class="icon-button" aria-label="Dismiss" onClick=${() => forget(permission.permission_id)}><${Icon} name="close" /></button>
  </li>`;
}
