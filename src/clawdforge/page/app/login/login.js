// @ts-check
// The login screen: one field, and how to come by what goes into it.
import { html, useState } from "../lib.js";
import { logIn } from "./actions.js";

export function Login() {
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    const token = String(new FormData(form).get("token") || "").trim();
    if (!token) return setProblem("Paste a token first.");
    setBusy(true);
    setProblem("");
    try {
      await logIn(token);
    } catch (error) {
      setProblem(/** @type {Error} */ (error).message);
    }
    setBusy(false);
  };
  return html`<main class="login">
    <form class="card" onSubmit=${submit}>
      <img src=${new URL("../../icon.svg", import.meta.url).href} alt="" />
      <h1>clawdforge</h1>
      <label class="field">
        <span class="name">Token</span>
        <input type="password" name="token" autocomplete="current-password" spellcheck="false" autofocus placeholder="cf_…" aria-describedby="login-hint login-problem" />
      </label>
      <p class="problem" id="login-problem" role="alert">${problem}</p>
      <button class="button main" disabled=${busy}>${busy ? "Logging in …" : "Log in"}</button>
      <p class="hint" id="login-hint">
        On the machine itself <code>clawdforge open</code> brings you in without a token. Elsewhere, <code>clawdforge token create</code> makes one.
      </p>
    </form>
  </main>`;
}
