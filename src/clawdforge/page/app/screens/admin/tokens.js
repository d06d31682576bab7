// @ts-check
// Tokens: made here and shown once, listed without their secrets, revoked at once.
import { get, post, remove } from "../../api/client.js";
import { html, useState } from "../../lib.js";
import { notify } from "../../store.js";
import { Dialog, ask } from "../../shell/dialog.js";
import { Trouble, useLoad } from "../loading.js";
import { sayAgo, sayTime, showHidden } from "../words.js";
import { Section, attempt, readForm } from "./parts.js";

const SCOPES = { read: "read", prompt: "send prompts", decide: "decide permissions", admin: "manage the app" };

export function Tokens() {
  const { value, error, again } = useLoad((signal) => get("/admin/tokens", {}, signal), []);
  const [making, setMaking] = useState(false);
  const [made, setMade] = useState(/** @type {any} */ (null));
  const now = Date.now() / 1000;
  const tokens = [...(value?.tokens ?? [])].sort(
    (a, b) => Number(Boolean(a.revoked_at)) - Number(Boolean(b.revoked_at)) || b.created_at - a.created_at,
  );
  const revoke = async (/** @type {any} */ token) => {
    const text = "Whoever uses it is logged out at once, and open streams end.";
    if (await ask({ title: `Revoke a token of ${token.app_name}?`, text, yes: "Revoke", bad: true })) {
      if (await attempt(() => remove(`/admin/tokens/${token.token_id}`), "It is revoked.")) again();
    }
  };
  return html`<${Section} title="Tokens" actions=${html`<button class="button main" onClick=${() => setMaking(true)}>New token</button>`}>
    ${error && html`<${Trouble} error=${error} again=${again} />`} ${made && html`<${Once} made=${made} close=${() => setMade(null)} />`}
    <div class="table-scroll" tabindex="0" role="region" aria-label="Table of tokens">
      <table class="stacks">
        <thead><tr><th scope="col">App</th><th scope="col">Note</th><th scope="col">May</th><th scope="col">Last used</th><th scope="col">Expires</th><th><span class="out-of-sight">Actions</span></th></tr></thead>
        <tbody>
          ${tokens.map(
            (token) => html`<tr key=${token.token_id} class=${token.revoked_at ? "was-cut" : ""}>
              <th scope="row">${showHidden(token.app_name)}</th>
              <td class="wrap" data-name="Note">${showHidden(token.note ?? "")}</td>
              <td data-name="May">${token.scopes.length === 4 ? "everything" : token.scopes.join(", ")}</td>
              <td data-name="Last used">${token.last_used_at ? sayAgo(token.last_used_at) : "never"}</td>
              <td data-name="Expires">${token.expires_at ? (token.expires_at < now ? "expired" : sayTime(token.expires_at)) : "never"}</td>
              <td class="actions">
                ${token.revoked_at ? html`<span class="quiet">revoked</span>` : html`<button class="button bad" onClick=${() => revoke(token)}>Revoke</button>`}
              </td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
    ${making && html`<${NewToken} close=${() => setMaking(false)} done=${(/** @type {any} */ token) => (setMade(token), setMaking(false), again())} />`}
  <//>`;
}

/** The only time that a token is seen. @param {{made: any, close: () => void}} props */
function Once({ made, close }) {
  const copy = () =>
    navigator.clipboard.writeText(made.token).then(
      () => notify("Copied."),
      () => notify("The browser did not let it be copied; select it instead.", "bad"),
    );
  return html`<div class="once card" role="status">
    <p><strong>The token of ${showHidden(made.app_name)}.</strong> It is shown only this once: keep it now.</p>
    <code class="wrap" data-secret>${made.token}</code>
    <div class="row">
      ${isSecureContext && html`<button class="button" onClick=${copy}>Copy</button>`}
      <button class="button" onClick=${close}>I have kept it</button>
    </div>
  </div>`;
}

/** @param {{close: () => void, done: (token: any) => void}} props */
function NewToken({ close, done }) {
  const submit = async (/** @type {SubmitEvent} */ event) => {
    const form = /** @type {HTMLFormElement} */ (event.target);
    const scopes = Object.keys(SCOPES).filter((name) => /** @type {any} */ (form.elements.namedItem(`may-${name}`)).checked);
    const { app_name, note, days } = readForm(event, ["days"]);
    const body = { app_name, note: note ?? null, scopes, expires_in_secs: days ? days * 86_400 : null };
    const made = await attempt(() => post("/admin/tokens", body));
    if (made) done(made);
  };
  return html`<${Dialog} title="New token" onClose=${close}>
    <form onSubmit=${submit}>
      <h2>New token</h2>
      <label class="field"><span class="name">App</span><input type="text" name="app_name" required maxlength="128" /><span class="hint">A name that is new makes a new app.</span></label>
      <label class="field"><span class="name">Note</span><input type="text" name="note" maxlength="200" /></label>
      <label class="field"><span class="name">Days until it expires</span><input type="number" name="days" min="1" max="3650" /><span class="hint">Empty: never.</span></label>
      <fieldset class="checks">
        <legend class="small">It may</legend>
        ${Object.entries(SCOPES).map(([name, title]) => html`<label class="row small"><input type="checkbox" name=${`may-${name}`} checked />${title}</label>`)}
      </fieldset>
      <div class="buttons"><button type="button" class="button" onClick=${close}>Cancel</button><button class="button main">Create</button></div>
    </form>
  <//>`;
}
