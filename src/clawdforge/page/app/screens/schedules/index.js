// @ts-check
// Prompts that the server submits by itself: all of them at #/schedules, one with its history at #/schedules/ID.
import { html, useState } from "../../lib.js";
import { Icon } from "../../shell/icons.js";
import { go, link } from "../../shell/router.js";
import { Trouble, useClock, useLoad } from "../loading.js";
import { sayAgo, showHidden } from "../words.js";
import { loadSchedules, nameOf, useLatest } from "./actions.js";
import { ScheduleForm } from "./form.js";
import { One } from "./one.js";
import { Became, Buttons, Next, Standing, Times, Turn, Where } from "./parts.js";

/** @param {{route: import("../../store.js").Route}} props */
export default function Schedules({ route }) {
  const id = route.parts[0];
  return id ? html`<${One} id=${id} key=${id} />` : html`<${All} into=${route.query.get("session")} />`;
}

/** @param {{into: string|null}} props the session that a new one is begun for */
function All({ into }) {
  const { value, error, busy, again } = useLoad(loadSchedules, []);
  const [making, setMaking] = useState(into !== null);
  const close = () => {
    setMaking(false);
    if (into !== null) go(link("schedules"), true);
  };
  useLatest(again, busy);
  const make = html`<button class="button main" onClick=${() => setMaking(true)}><${Icon} name="plus" />New schedule</button>`;
  return html`<header class="head"><h1 class="grow">Schedules</h1>${value?.length ? make : null}</header>
    <div class="scroll" tabindex="0" role="region" aria-label="Schedules" aria-busy=${String(!value && !error)}>
      <div class="page stack">
        ${error && html`<${Trouble} error=${error} again=${again} />`}
        ${value && !value.length && html`<${Nothing}>${make}<//>`}
        <ul class="schedules">
          ${value?.map((row) => html`<${Card} key=${row.schedule_id} row=${row} again=${again} />`)}
        </ul>
      </div>
    </div>
    ${making && html`<${ScheduleForm} row=${null} into=${into ?? ""} close=${close} done=${() => (close(), again())} />`}`;
}

/** @param {{children?: any}} props */
function Nothing({ children }) {
  return html`<div class="empty">
    <h2>Nothing is scheduled</h2>
    <p>The server can send a prompt by itself: every working day at nine, or once next Tuesday; into a session of yours, or each time into a new one.</p>
    ${children}
  </div>`;
}

/** @param {{row: import("./actions.js").Schedule, again: () => void}} props */
function Card({ row, again }) {
  const now = useClock(30_000);
  const name = `schedule-${row.schedule_id}`;
  return html`<li class="card schedule" aria-labelledby=${name} data-schedule=${row.schedule_id}>
    <div class="row">
      <h2 class="grow cut" id=${name}><a href=${link("schedules", row.schedule_id)}>${showHidden(nameOf(row))}</a></h2>
      <${Standing} row=${row} />
    </div>
    <dl class="schedule-facts">
      <div><dt>When</dt><dd><${Times} row=${row} /></dd></div>
      <div><dt>Next</dt><dd><${Next} row=${row} /></dd></div>
      <div><dt>Last</dt><dd>${row.last ? html`<${Became} one=${row.last} /> <span class="quiet">${sayAgo(row.last.planned_at, now)}</span> <${Turn} one=${row.last} />` : html`<span class="quiet">nothing yet</span>`}</dd></div>
      <div><dt>Where</dt><dd><${Where} row=${row} /></dd></div>
    </dl>
    <${Buttons} row=${row} about=${name} again=${again} gone=${again} />
  </li>`;
}
