// @ts-check
// The list at the left: search box, new session, one line for each session with what it does.
import { html, useState } from "../lib.js";
import { activityOf, currentId, sessionFilter, sessionOrder, sessions, sessionsNext } from "../store.js";
import { Icon } from "../shell/icons.js";
import { showDirections } from "../transcript/directions.js";
import { link } from "../shell/router.js";
import { loadMoreSessions, tell } from "./actions.js";
import { SessionMenu } from "./menu.js";
import { NewSession } from "./new.js";
import { ago } from "./words.js";
import { useClock } from "../screens/loading.js";

/** @type {Record<string, string>} */
const WORDS = { running: "running", waiting: "asks you", queued: "queued", interrupted: "interrupted", failed: "failed" };

/** @param {{row: import("../store.js").Session}} props */
function Line({ row }) {
  const doing = activityOf(row);
  const here = currentId.value === row.session_id;
  const words = [WORDS[doing], row.queued_turns > 0 && doing !== "queued" ? `${row.queued_turns} queued` : "", row.agent];
  return html`<li class="session" data-session=${row.session_id}>
    <a href=${link("s", row.session_id)} aria-current=${here ? "page" : null}>
      <span class=${`dot ${doing}`} aria-hidden="true"></span>
      <span class="grow">
        <span class="title cut">${showDirections(row.title || "New session")}</span>
        <span class="about cut"><span>${words.filter(Boolean).join(" · ")}</span><span>${ago(row.updated_at)}</span></span>
      </span>
      ${row.pinned && html`<${Icon} name="pin" label="pinned" />`}
    </a>
    <${SessionMenu} row=${row} />
  </li>`;
}

export function SessionList() {
  useClock(30_000); // “3 minutes ago” goes on
  const [making, setMaking] = useState(false);
  const rows = sessionOrder.value.map((id) => sessions.value.get(id)).filter((row) => row !== undefined);
  const sorted = [...rows].sort((a, b) => Number(b.pinned) - Number(a.pinned));
  return html`<section class="sessions" aria-label="Sessions">
    <div class="row finder">
      <input type="search" placeholder="Find a session" aria-label="Find a session" value=${sessionFilter.value}
        onInput=${(/** @type {any} */ event) => (sessionFilter.value = event.target.value)} />
      <button class="icon-button" aria-label="New session" title="New session" onClick=${() => setMaking(true)}><${Icon} name="plus" /></button>
    </div>
    <ul class="scroll" tabindex="-1">
      ${sorted.map((row) => html`<${Line} row=${row} key=${row.session_id} />`)}
      ${!rows.length && html`<li class="hint nothing">${sessionFilter.value ? "Nothing has that name." : "No sessions yet."}</li>`}
      ${sessionsNext.value && html`<li class="nothing"><button class="button bare" onClick=${() => tell(loadMoreSessions)}>Show more</button></li>`}
    </ul>
    ${making && html`<${NewSession} onClose=${() => setMaking(false)} />`}
  </section>`;
}
