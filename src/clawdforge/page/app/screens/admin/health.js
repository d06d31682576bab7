// @ts-check
// How the server is: its version, how agents are contained, what is stuck, who shares the work, what takes space.
import { get, post, remove } from "../../api/client.js";
import { html } from "../../lib.js";
import { link } from "../../shell/router.js";
import { Trouble, useLoad } from "../loading.js";
import { sayBytes, sayCount, sayLength, showHidden } from "../words.js";
import { Section, attempt } from "./parts.js";

export function Health() {
  const { value, error, again } = useLoad(async (signal) => {
    const [health, stuck, disk, shared] = await Promise.all([
      get("/healthz", {}, signal),
      get("/admin/stuck", {}, signal),
      get("/admin/disk", {}, signal),
      get("/admin/nodes", {}, signal),
    ]);
    return { health, stuck, disk, nodes: shared.nodes };
  }, []);
  if (error) return html`<${Trouble} error=${error} again=${again} />`;
  if (!value) return html`<div aria-busy="true"></div>`;
  const { health, stuck, disk, nodes } = value;
  const pause = () =>
    attempt(
      () => post(health.paused ? "/admin/resume" : "/admin/pause", {}),
      health.paused ? "Turns start again." : "No turn starts any more.",
    ).then(again);
  return html`<${Section} title="Server" actions=${html`<button class="button" onClick=${pause}>${health.paused ? "Resume everything" : "Pause everything"}</button>`}>
      ${health.paused && html`<p class="chip warn">Everything is paused</p>`}
      <dl class="facts card">
        ${fact("Version", health.version)} ${fact("SQLite", health.sqlite_version ?? "–")} ${fact("Open sessions", sayCount(health.open_sessions))}
        ${fact("Live agents", sayCount(health.live_agents))} ${fact("acpx", health.acpx_present ? (health.acpx_version ?? "there") : "not installed")}
        ${fact("Loopback is trusted", health.trust_loopback ? "yes" : "no")}
      </dl>
    <//>
    <${Sandbox} health=${health} />
    <${Section} title="Stuck">
      ${!stuck.sessions.length && !Object.keys(stuck.tasks).length && html`<p class="quiet">Nothing waits longer than it should.</p>`}
      <ul class="stack tight">
        ${stuck.sessions.map(
          (/** @type {any} */ one) =>
            html`<li class="row small"><a href=${link("s", one.session_id)}>${showHidden(one.app_name)}</a> waits for ${one.waits_for} for ${sayLength(one.secs)}</li>`,
        )}
        ${Object.entries(stuck.tasks).map(([name, reason]) => html`<li class="wrap small"><strong>${name}</strong> ${showHidden(reason)}</li>`)}
      </ul>
    <//>
    ${nodes.length > 1 && html`<${Section} title="Servers that share the database"><${Nodes} nodes=${nodes} again=${again} /><//>`}
    <${Section} title=${`Disk: ${sayBytes(disk.bytes)}`}><${Disk} apps=${disk.apps} /><//>`;
}

/** @param {string} name @param {unknown} value */
const fact = (name, value) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`;

/** @param {{health: any}} props */
function Sandbox({ health }) {
  const off = health.sandbox === "off" || health.sandbox === "none";
  return html`<${Section} title="Containment of agents">
    <div class="card sandbox">
      <div class="row"><span class=${`chip ${off ? "bad" : "good"}`}>${showHidden(health.sandbox)}</span><span class="small quiet wrap">${showHidden(health.sandbox_reason ?? "")}</span></div>
      ${health.sandbox_walls.length > 0 && html`<p class="small">Walls: ${health.sandbox_walls.join(", ")}</p>`}
      <p class="small">
        Each agent may have ${health.agent_max_processes ? sayCount(health.agent_max_processes) : "any number of"} processes and
        ${" "}${health.agent_max_memory_bytes ? sayBytes(health.agent_max_memory_bytes) : "any amount"} of memory${health.agent_limits ? `, held by ${health.agent_limits}` : ""}.
      </p>
    </div>
  <//>`;
}

/** @param {{nodes: any[], again: () => void}} props */
function Nodes({ nodes, again }) {
  return html`<ul class="stack tight">
    ${nodes.map(
      (node) => html`<li class="row small">
        <span class=${`chip ${node.state === "up" ? "good" : "warn"}`}>${node.is_drained ? "drained" : node.state}</span>
        <span class="grow wrap">${showHidden(node.name)}${node.is_this ? ", which answers you" : ""}</span>
        <span class="quiet">${sayCount(node.sessions)} sessions, ${sayCount(node.turns)} of them at work, ${node.version}</span>
        ${node.differs.length > 0 && html`<span class="chip warn wrap">other settings: ${node.differs.join(", ")}</span>`}
        ${node.state !== "dead" && html`<${DrainButton} node=${node} again=${again} />`}
      </li>`,
    )}
  </ul>`;
}

/** @param {{node: any, again: () => void}} props */
function DrainButton({ node, again }) {
  const path = `/admin/nodes/${encodeURIComponent(node.node)}/drain`;
  const isOver = node.state === "draining";
  const act = () =>
    attempt(
      () => (isOver ? remove(path) : post(path, {})),
      isOver ? "It begins turns again." : "It begins no turns, and leaves its sessions to the others.",
    ).then(again);
  const words = isOver ? "Undo the drain" : "Drain";
  return html`<button class="button" aria-label=${`${words}: ${node.name}`} onClick=${act}>${words}</button>`;
}

/** @param {{apps: any[]}} props */
function Disk({ apps }) {
  return html`<ul class="stack tight">
    ${apps.map(
      (app) => html`<li class="disk small">
        <span class="row"><span class="grow wrap">${showHidden(app.app_name)}</span>${sayBytes(app.bytes)}${app.max_bytes ? ` of ${sayBytes(app.max_bytes)}` : ""}</span>
        ${app.max_bytes && html`<meter aria-label=${`Stored by ${app.app_name}`} value=${Math.min(1, app.bytes / app.max_bytes)} max="1" high="0.8"></meter>`}
      </li>`,
    )}
  </ul>`;
}
