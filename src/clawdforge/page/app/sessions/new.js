// @ts-check
// The dialog that makes a session: agent, model, folder, who decides, how long it is kept.
import { html, useEffect, useState } from "../lib.js";
import { get } from "../api/client.js";
import { Dialog } from "../shell/dialog.js";
import { notify } from "../store.js";
import { makeSession } from "./actions.js";
import { retentionWords } from "./words.js";

export const MODES = [
  ["ask", "Ask me", "Each thing the agent wants to do waits for your word."],
  ["approve_reads", "Allow reading", "Reading is allowed; everything else waits for your word."],
  ["approve_all", "Allow everything", "Nothing is asked. Best inside a sandbox."],
  ["deny_all", "Refuse everything", "The agent may only talk."],
];
/** What may become of a session, with the dates where the server tells its ages. @param {any} limits */
function keepings(limits) {
  const closes_at = Date.now() / 1000 + (limits?.closes_after_secs ?? 0);
  const dates = limits?.closes_after_secs == null ? {} : { closes_at, deletes_at: closes_at + limits.deletes_after_secs };
  return [["ttl", "Let it expire", retentionWords({ retention: "ttl", ...dates })], ["keep", "Keep it", retentionWords({ retention: "keep" })]];
}

/** @param {{name: string, title: string, choices: string[][], value: string, onChange: (value: string) => void}} props */
export function Choice({ name, title, choices, value, onChange }) {
  const about = choices.find((one) => one[0] === value)?.[2];
  return html`<label class="field">
    <span class="name">${title}</span>
    <select name=${name} value=${value} onChange=${(/** @type {any} */ event) => onChange(event.target.value)}>
      ${choices.map((one) => html`<option value=${one[0]} key=${one[0]} selected=${one[0] === value}>${one[1]}</option>`)}
    </select>
    <span class="hint">${about}</span>
  </label>`;
}

/** @param {{agents: any[], agent: string, onChange: (agent: string) => void}} props */
export function AgentChoice({ agents, agent, onChange }) {
  const chosen = agents.find((one) => one.name === agent);
  const copy = (/** @type {string} */ words) => navigator.clipboard?.writeText(words).then(() => notify("Copied."));
  return html`<label class="field">
    <span class="name">Agent</span>
    <select value=${agent} onChange=${(/** @type {any} */ event) => onChange(event.target.value)}>
      ${agents.map((one) => html`<option value=${one.name} key=${one.name} selected=${one.name === agent}>${one.title || one.name}${one.installed ? "" : " (not installed)"}</option>`)}
    </select>
    ${chosen?.installed && html`<span class="hint">${chosen.version ? `Version ${chosen.version}. ` : ""}${chosen.sandbox ? `Contained: ${chosen.sandbox}.` : ""}</span>`}
    ${chosen && !chosen.installed && html`<span class="hint wrap">Not installed here. ${chosen.install && html`Get it with <button type="button" class="link mono wrap" onClick=${() => copy(chosen.install)}>${chosen.install}</button>`}</span>`}
    ${chosen?.paused && html`<span class="hint">Paused by the operator: what you send waits.</span>`}
  </label>`;
}

/** @param {{onClose: () => void}} props */
export function NewSession({ onClose }) {
  const [agents, setAgents] = useState(/** @type {any[]} */ ([]));
  const [agent, setAgent] = useState("");
  const [mode, setMode] = useState(localStorage.getItem("clawdforge.mode") || "ask");
  const [keeping, setKeeping] = useState("ttl");
  const [limits, setLimits] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    get("/agents").then((reply) => (setAgents(reply.agents), setAgent(reply.default)), (error) => setProblem(error.message));
    get("/limits").then(setLimits, () => null);
  }, []);
  const chosen = agents.find((one) => one.name === agent);
  const submit = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (event.target));
    const text = (/** @type {string} */ name) => String(form.get(name) || "").trim() || undefined;
    setBusy(true);
    setProblem("");
    try {
      localStorage.setItem("clawdforge.mode", mode);
      await makeSession({ agent, model: text("model"), cwd: text("cwd"), title: text("title"), permission_mode: mode, retention: keeping });
      onClose();
    } catch (error) {
      setProblem(/** @type {Error} */ (error).message);
    }
    setBusy(false);
  };
  return html`<${Dialog} title="New session" onClose=${onClose}>
    <form onSubmit=${submit}>
      <h2>New session</h2>
      <${AgentChoice} agents=${agents} agent=${agent} onChange=${setAgent} />
      <label class="field"><span class="name">Model</span><input type="text" name="model" placeholder="The agent's own choice" spellcheck="false" /></label>
      <label class="field"><span class="name">Folder</span><input type="text" name="cwd" placeholder="A new, empty one" spellcheck="false" class="mono" /></label>
      <${Choice} name="mode" title="Permissions" choices=${MODES} value=${mode} onChange=${setMode} />
      <${Choice} name="keeping" title="Keeping" choices=${keepings(limits)} value=${keeping} onChange=${setKeeping} />
      <label class="field"><span class="name">Title</span><input type="text" name="title" placeholder="The beginning of the first prompt" maxlength="500" /></label>
      <p class="problem" role="alert">${problem}</p>
      <div class="buttons">
        <button type="button" class="button" onClick=${onClose}>Cancel</button>
        <button class="button main" disabled=${busy || !chosen?.installed}>Start</button>
      </div>
    </form>
  <//>`;
}
