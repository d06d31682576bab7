// @ts-check
// The end of a turn: how it went, what it used, and what can be done with it now.
import { html } from "../../lib.js";
import { brief, lasted, moment, shortMoment } from "../../sessions/words.js";
import { Icon } from "../../shell/icons.js";
import { Menu } from "../../shell/menu.js";
import * as actions from "../turn_actions.js";

/** @type {Record<string, string>} */
const OUTCOMES = { cancelled: "Stopped. The answer so far is kept.", failed: "Failed.", timed_out: "Out of time.", interrupted: "Interrupted: the server or the agent stopped in the middle." };

/** @type {Record<string, string>} */
const BRIEF = { failed: "Failed", timed_out: "Out of time", interrupted: "Interrupted" };

/** What became of the turn, said once: the server's own reason, where it gives one, tells more than our words. @param {any} info */
function sayEnd(info) {
  const reason = info.error ? `${info.error}${/[.!?]$/.test(info.error) ? "" : "."}` : "";
  const what = reason && BRIEF[info.outcome] ? `${BRIEF[info.outcome]}: ${reason}` : `${OUTCOMES[info.outcome] || info.outcome} ${reason}`;
  return `${what.trim()}${info.stopped_by ? ` It crossed ${info.stopped_by}.` : ""}`;
}

/** @param {any} usage */
function spent(usage) {
  if (!usage?.total_tokens) return "";
  const cost = usage.cost_usd ? ` · ${usage.cost_estimated ? "about " : ""}$${usage.cost_usd.toFixed(usage.cost_usd < 0.1 ? 3 : 2)}` : "";
  return `${usage.estimated ? "about " : ""}${brief(usage.total_tokens)} tokens${cost}`;
}

/** @param {{row: import("../rows.js").Row, room: import("../room.js").Room}} props */
export function EndRow({ row, room }) {
  void row.rev.value;
  const info = row.group.info || {};
  const last = room.groups[room.groups.length - 1] === row.group && room.running.value === null;
  const bad = info.outcome && info.outcome !== "completed";
  const facts = [info.ended_at ? shortMoment(info.ended_at) : "", info.duration_ms >= 100 ? lasted(info.duration_ms) : "", spent(info.usage)];
  const group = row.group;
  const button = (/** @type {string} */ icon, /** @type {string} */ name, /** @type {() => void} */ run) =>
    html`<button class="icon-button" aria-label=${name} title=${name} onClick=${run}><${Icon} name=${icon} /></button>`;
  return html`<footer class=${`end ${last ? "last" : ""}`}>
    ${bad &&
    html`<div class=${`outcome ${info.outcome}`} role=${last ? "status" : null}>
      <p class="wrap">${sayEnd(info)}</p>
      ${last && info.outcome !== "cancelled" &&
      html`<div class="row">
        <button class="button" onClick=${() => actions.goOn(room)}>Continue</button>
        <button class="button" onClick=${() => actions.retry(room)}><${Icon} name="retry" />Retry</button>
      </div>`}
    </div>`}
    <div class="row end-line">
      <span class="end-facts cut" title=${info.ended_at ? moment(info.ended_at) : null}>${facts.filter(Boolean).join(" · ")}</span>
      <span class="end-does">
      ${button("copy", "Copy the answer", () => actions.copy(group))}
      ${last && button("retry", "Retry", () => actions.retry(room))}
      ${last && button("edit", "Edit and send again", () => actions.edit(room, group))}
      ${last && button("undo", "Undo", () => actions.undo(room, group))}
      ${button("fork", "Fork after this turn", () => actions.fork(room, group))}
      ${!last && html`<${Menu} label="More about this turn" items=${[
        { name: "Undo to before this …", icon: "undo", run: () => actions.undo(room, group) },
        { name: "Edit and send again …", icon: "edit", run: () => actions.edit(room, group) },
      ]} />`}
      </span>
    </div>
  </footer>`;
}
