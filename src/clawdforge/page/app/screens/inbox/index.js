// @ts-check
// The inbox: what agents ask for, over all sessions.
import { html, useEffect, useState } from "../../lib.js";
import { waiting } from "../../store.js";
import { Trouble } from "../loading.js";
import { later, refresh, settled } from "./actions.js";
import { Card, Settled } from "./card.js";
import { notifying, switchNotifications } from "./notifications.js";

export default function Inbox() {
  const [agent, setAgent] = useState("");
  const [error, setError] = useState(/** @type {Error|null} */ (null));
  const load = () =>
    refresh().then(
      () => setError(null),
      (failure) => setError(failure),
    );
  useEffect(() => void load(), []);
  const agents = [...new Set(waiting.value.map((one) => one.agent))].sort();
  const shown = waiting.value.filter((one) => !agent || one.agent === agent);
  const isLater = (/** @type {any} */ one) => later.value.has(one.permission_id);
  return html`<header class="head">
      <h1 class="grow">Waiting for you${waiting.value.length ? ` (${waiting.value.length})` : ""}</h1>
      ${
        agents.length > 1 &&
        html`<select class="narrow" aria-label="Filter by agent" value=${agent} onChange=${(/** @type {any} */ event) => setAgent(event.target.value)}>
        <option value="">All agents</option>
        ${agents.map((name) => html`<option value=${name}>${name}</option>`)}
      </select>`
      }
      <${Bell} />
    </header>
    <div class="scroll" tabindex="0" role="region" aria-label="Requests">
      <div class="page">
        ${error && html`<${Trouble} error=${error} again=${load} />`}
        <ul class="asks" aria-live="polite">
          ${[...settled.value.values()].map((one) => html`<${Settled} key=${one.permission.permission_id} ...${one} />`)}
          ${shown.filter((one) => !isLater(one)).map((one) => html`<${Card} key=${one.permission_id} permission=${one} folded=${false} />`)}
          ${shown.filter(isLater).map((one) => html`<${Card} key=${one.permission_id} permission=${one} folded=${true} />`)}
        </ul>
        ${!shown.length && !error && html`<${Nothing} />`}
      </div>
    </div>`;
}

function Nothing() {
  return html`<div class="empty">
    <h2>Nothing waits for you</h2>
    <p>When an agent asks before it does something, it stands here, and the tab’s title counts it. Sessions ask when their permission mode is “ask”.</p>
  </div>`;
}

function Bell() {
  if (notifying.value === "missing") return null;
  /** @type {Record<string, string>} */
  const words = { on: "Notifications are on", off: "Notify me", refused: "The browser refuses notifications" };
  return html`<button class="button" disabled=${notifying.value === "refused"} aria-pressed=${String(notifying.value === "on")} onClick=${switchNotifications}>
    ${words[notifying.value]}
  </button>`;
}
