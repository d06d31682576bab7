// @ts-check
// The dialog that makes a schedule or changes one: what is said, when, where, and what becomes of times that cannot be kept.
import { get } from "../../api/client.js";
import { html, useEffect, useState } from "../../lib.js";
import { keepForGood } from "../../sessions/actions.js";
import { AgentChoice, Choice, MODES } from "../../sessions/new.js";
import { Dialog } from "../../shell/dialog.js";
import { notify } from "../../store.js";
import { showHidden } from "../words.js";
import { save } from "./actions.js";
import { readCron, writePattern } from "./pattern.js";
import { MISSED, OVERLAPS } from "./rules.js";
import { MY_ZONE, toField } from "./times.js";
import { When } from "./when.js";

const SESSIONS = 200;
const DAY_SECS = 86_400;
const KEEPING = [
  ["ttl", "Let them expire", "They are closed when they have been idle for long, and deleted some time later."],
  ["keep", "Keep them", "Each is kept until you delete it."],
];

/** @param {import("./actions.js").Schedule|null} row @returns {import("./pattern.js").Pattern} */
function begin(row) {
  const zone = row?.timezone ?? MY_ZONE;
  const tomorrow = `${toField(Date.now() / 1000 + DAY_SECS, zone).slice(0, 10)}T09:00`;
  const usual = { kind: "day", time: "09:00", minute: "0", day: "MON", date: "1", cron: "0 9 * * MON-FRI", at: tomorrow, zone };
  if (row?.cron) return { ...usual, ...readCron(row.cron) };
  return row?.at ? { ...usual, kind: "once", at: toField(row.at, zone) } : usual;
}

/** @param {{row: import("./actions.js").Schedule|null, into?: string, close: () => void, done: () => void}} props */
export function ScheduleForm({ row, into: begun = "", close, done }) {
  const [first] = useState(() => begin(row));
  const [when, setWhen] = useState(first);
  const [overlap, setOverlap] = useState(row?.overlap ?? "skip");
  const [missed, setMissed] = useState(row?.missed ?? "run_once");
  const [into, setInto] = useState(/** @type {Into} */ ({ session_id: begun, expires: false, agent: "", mode: "ask", keeping: "ttl", cwd: "" }));
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const title = row ? "Change the schedule" : "New schedule";
  const submit = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (event.target));
    const isMoved = !row || JSON.stringify(writePattern(when)) !== JSON.stringify(writePattern(first));
    const said = { prompt: String(form.get("prompt")), title: String(form.get("title")).trim(), overlap, missed };
    setBusy(true);
    setProblem("");
    try {
      if (into.session_id && into.expires) await keepForGood(into.session_id);
      await save({ ...said, ...(isMoved && writePattern(when)), ...(!row && writeInto(into)) }, row);
      notify(row ? "The schedule is changed." : "The schedule is made.");
      done();
    } catch (error) {
      setProblem(/** @type {Error} */ (error).message);
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${title} onClose=${close}>
    <form onSubmit=${submit}>
      <h2>${title}</h2>
      <label class="field"><span class="name">Prompt</span>
        <textarea name="prompt" rows="4" required maxlength="100000" defaultValue=${row?.prompt ?? ""} placeholder="What the agent is told each time"></textarea></label>
      <label class="field"><span class="name">Title</span>
        <input type="text" name="title" maxlength="500" defaultValue=${row?.title ?? ""} placeholder="The beginning of the prompt" /></label>
      <${When} value=${when} set=${(/** @type {any} */ change) => setWhen((old) => ({ ...old, ...change }))} />
      ${!row && html`<${Where} value=${into} set=${(/** @type {any} */ change) => setInto((old) => ({ ...old, ...change }))} />`}
      <details class="rules small"><summary>When a time cannot be kept</summary>
        <div class="stack">
          <${Choice} name="overlap" title="While its last turn has not ended" choices=${OVERLAPS} value=${overlap} onChange=${setOverlap} />
          <${Choice} name="missed" title="Times that were missed" choices=${MISSED} value=${missed} onChange=${setMissed} />
        </div>
      </details>
      ${row && html`<p class="hint">From now on it runs with the token that you have logged in with.</p>`}
      <p class="problem" role="alert">${problem}</p>
      <div class="buttons">
        <button type="button" class="button" onClick=${close}>Cancel</button>
        <button class="button main" disabled=${busy}>${row ? "Save" : "Make it"}</button>
      </div>
    </form>
  <//>`;
}

/** `expires` says that the session would be closed when it is idle, so that times would find it closed.
 * @typedef {{session_id: string, expires: boolean, agent: string, mode: string, keeping: string, cwd: string}} Into */

/** @param {Into} into */
function writeInto(into) {
  if (into.session_id) return { session_id: into.session_id };
  return { session: { agent: into.agent || undefined, cwd: into.cwd.trim() || undefined, permission_mode: into.mode, retention: into.keeping } };
}

/** The sessions that can be chosen, the last used first, and the one that was. @param {string} id @returns {Promise<import("../../store.js").Session[]>} */
async function loadOpen(id) {
  const rows = (await get("/sessions", { limit: SESSIONS })).sessions.filter((/** @type {any} */ one) => one.live);
  const isThere = !id || rows.some((/** @type {any} */ one) => one.session_id === id);
  return isThere ? rows : [await get(`/sessions/${encodeURIComponent(id)}`), ...rows];
}

/** @param {{value: Into, set: (change: Partial<Into>) => void}} props */
function Where({ value, set }) {
  const [agents, setAgents] = useState(/** @type {any[]} */ ([]));
  const [open, setOpen] = useState(/** @type {import("../../store.js").Session[]} */ ([]));
  const choose = (/** @type {string} */ id, /** @type {import("../../store.js").Session[]} */ rows) =>
    set({ session_id: id, expires: rows.some((one) => one.session_id === id && one.retention !== "keep") });
  useEffect(() => {
    get("/agents").then((reply) => (setAgents(reply.agents), set({ agent: reply.default })), () => null); // the server names its own then
    loadOpen(value.session_id).then((rows) => (setOpen(rows), choose(value.session_id, rows)), () => null);
  }, []);
  return html`<label class="field"><span class="name">Where</span>
      <select name="session" value=${value.session_id} onChange=${(/** @type {any} */ event) => choose(event.target.value, open)}>
        <option value="" selected=${!value.session_id}>A new session each time</option>
        ${open.map((one) => html`<option value=${one.session_id} key=${one.session_id} selected=${one.session_id === value.session_id}>${showHidden(one.title || "New session")}</option>`)}
      </select>
      ${value.session_id && html`<span class="hint">It remembers the earlier times.${value.expires ? " From now on it is kept until you delete it, so that its times do not find it closed." : ""}</span>`}</label>
    ${
      !value.session_id &&
      html`<${AgentChoice} agents=${agents} agent=${value.agent} onChange=${(/** @type {string} */ agent) => set({ agent })} />
      <label class="field"><span class="name">Folder</span><input type="text" name="cwd" placeholder="A new, empty one" spellcheck="false" class="mono" value=${value.cwd} onInput=${(/** @type {any} */ event) => set({ cwd: event.target.value })} /></label>
      <${Choice} name="mode" title="Permissions" choices=${MODES} value=${value.mode} onChange=${(/** @type {string} */ mode) => set({ mode })} />
      <${Choice} name="keeping" title="Keeping" choices=${KEEPING} value=${value.keeping} onChange=${(/** @type {string} */ keeping) => set({ keeping })} />`
    }`;
}
