// @ts-check
// Apps: what they may have, what they have, and a pause for those that have to wait.
import { call, get, post } from "../../api/client.js";
import { html, useState } from "../../lib.js";
import { Dialog, ask } from "../../shell/dialog.js";
import { Trouble, useLoad } from "../loading.js";
import { LIMITS, sayUse } from "../shares.js";
import { sayBytes, sayCount, sayTime, showHidden } from "../words.js";
import { Section, attempt, readForm } from "./parts.js";

export function Apps() {
  const { value, error, again } = useLoad((signal) => get("/admin/apps", {}, signal), []);
  const [edited, setEdited] = useState(/** @type {any} */ (null));
  const close = () => {
    setEdited(null);
    again();
  };
  return html`<${Section} title="Apps">
    ${error && html`<${Trouble} error=${error} again=${again} />`}
    <div class="table-scroll" tabindex="0" role="region" aria-label="Table of apps">
      <table class="numbers stacks">
        <thead><tr><th scope="col">App</th><th scope="col">Sessions</th><th scope="col">Tokens</th><th scope="col">Stored</th><th scope="col">Since</th><th><span class="out-of-sight">Actions</span></th></tr></thead>
        <tbody>
          ${value?.apps.map(
            (/** @type {any} */ app) => html`<tr key=${app.app_name}>
              <th scope="row">${showHidden(app.app_name)} ${app.paused && html`<span class="chip warn">paused</span>`}</th>
              <td data-name="Sessions">${sayCount(app.sessions)}</td>
              <td data-name="Tokens">${sayCount(app.tokens)}</td>
              <td data-name="Stored">${sayBytes(app.bytes_stored)}</td>
              <td data-name="Since">${sayTime(app.created_at)}</td>
              <td class="actions">
                <button class="button" onClick=${() => setEdited(app)}>Limits</button>
                <button class="button" onClick=${() => pause(app).then((done) => done && again())}>${app.paused ? "Resume" : "Pause"}</button>
              </td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
    <p class="hint">An app is made with its first token.</p>
    ${edited && html`<${Limits} app=${edited} close=${close} />`}
  <//>`;
}

/** @param {any} app */
async function pause(app) {
  if (app.paused) return attempt(() => post("/admin/resume", { app_name: app.app_name }), "It goes on.");
  const text = "No turn of it starts until you resume it. Turns that run go on to their end.";
  if (!(await ask({ title: `Pause ${app.app_name}?`, text, yes: "Pause" }))) return null;
  return attempt(() => post("/admin/pause", { app_name: app.app_name }), "Nothing of it starts any more.");
}

/** @param {{app: any, close: () => void}} props */
function Limits({ app, close }) {
  const submit = async (/** @type {SubmitEvent} */ event) => {
    const limits = readForm(event, Object.keys(LIMITS));
    if (await attempt(() => call("POST", "/admin/apps", { body: { app_name: app.app_name, limits } }), "The limits are set."))
      close();
  };
  return html`<${Dialog} title=${`Limits of ${app.app_name}`} onClose=${close}>
    <form onSubmit=${submit}>
      <h2>Limits of ${showHidden(app.app_name)}</h2>
      <p class="hint">An empty field leaves it to the server’s own setting.</p>
      <div class="fields">
        ${Object.entries(LIMITS).map(
          ([name, { title }]) =>
            html`<label class="field"><span class="name">${title}</span><input type="number" min="0" name=${name} value=${app.limits[name] ?? ""} placeholder=${app.allowed[name] ?? ""} /><span class="hint">${sayUse(name, app)}${app.sources[name] === "own" ? "" : ", by the server’s setting"}</span></label>`,
        )}
      </div>
      <div class="buttons"><button type="button" class="button" onClick=${close}>Cancel</button><button class="button main">Save</button></div>
    </form>
  <//>`;
}
