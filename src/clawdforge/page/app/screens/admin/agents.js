// @ts-check
// Agents: which are installed, how to get the others, and a pause for each.
import { get, post } from "../../api/client.js";
import { html } from "../../lib.js";
import { me } from "../../store.js";
import { Trouble, useLoad } from "../loading.js";
import { showHidden } from "../words.js";
import { Section, attempt } from "./parts.js";

const NO_APP = "Agents are listed for apps. Log in with an app’s token as well, and they stand here.";

export function Agents() {
  const { value, error, again } = useLoad((signal) => (me.value?.app_name ? get("/agents", {}, signal) : Promise.resolve(null)), [me.value?.app_name]);
  const pause = (/** @type {any} */ agent) =>
    attempt(
      () => post(agent.paused ? "/admin/resume" : "/admin/pause", { agent: agent.name }),
      agent.paused ? "It goes on." : "No turn of it starts.",
    ).then(again);
  if (!me.value?.app_name) return html`<${Section} title="Agents"><p class="quiet">${NO_APP}</p><//>`;
  const agents = [...(value?.agents ?? [])].sort((a, b) => Number(b.installed) - Number(a.installed));
  return html`<${Section} title="Agents">
    ${error && html`<${Trouble} error=${error} again=${again} />`}
    <ul class="agents">
      ${agents.map(
        (agent) => html`<li class="card agent" key=${agent.name}>
          <div class="row">
            <strong class="grow">${showHidden(agent.title || agent.name)} ${agent.name === value.default && html`<span class="chip accent">default</span>`}</strong>
            ${agent.paused && html`<span class="chip warn">paused</span>`}
            <span class=${`chip ${agent.installed ? "good" : ""}`}>${agent.installed ? "installed" : "not installed"}</span>
          </div>
          <p class="small quiet wrap">${agent.name} · ${agent.driver}${agent.version ? ` · ${showHidden(agent.version)}` : ""} · sandbox ${agent.sandbox ?? "off"}</p>
          ${!agent.installed && agent.install && html`<code class="wrap small">${showHidden(agent.install)}</code>`}
          ${agent.installed && html`<div><button class="button" onClick=${() => pause(agent)}>${agent.paused ? "Resume" : "Pause"}</button></div>`}
        </li>`,
      )}
    </ul>
  <//>`;
}
