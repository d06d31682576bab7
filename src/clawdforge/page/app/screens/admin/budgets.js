// @ts-check
// Budgets: what apps may spend, what is left, and new ones.
import { call, get, remove } from "../../api/client.js";
import { html, useState } from "../../lib.js";
import { Dialog, ask } from "../../shell/dialog.js";
import { Trouble, useLoad } from "../loading.js";
import { sayCount, sayMoney, sayTime, showHidden } from "../words.js";
import { Section, attempt, readForm } from "./parts.js";

const PERIODS = { day: "a day", month: "a month", total: "in all" };
const THEN = { refuse: "no new turn", ask: "ask before each turn", stop: "no new turn, and stop the running one" };

export function Budgets() {
  const { value, error, again } = useLoad((signal) => get("/admin/budgets", {}, signal), []);
  const [making, setMaking] = useState(false);
  const drop = async (/** @type {any} */ budget) => {
    if (!(await ask({ title: `Remove this budget of ${budget.app_name}?`, yes: "Remove", bad: true }))) return;
    if (await attempt(() => remove(`/admin/budgets/${budget.budget_id}`), "It is removed.")) again();
  };
  return html`<${Section} title="Budgets" actions=${html`<button class="button main" onClick=${() => setMaking(true)}>New budget</button>`}>
    ${error && html`<${Trouble} error=${error} again=${again} />`}
    ${value && !value.budgets.length && html`<p class="quiet">There are none: apps may spend what they like.</p>`}
    <ul class="budgets">
      ${value?.budgets.map((/** @type {any} */ budget) => html`<${Line} key=${budget.budget_id} budget=${budget} drop=${() => drop(budget)} />`)}
    </ul>
    ${making && html`<${NewBudget} close=${() => setMaking(false)} done=${() => (setMaking(false), again())} />`}
  <//>`;
}

/** @param {{budget: any, drop: () => void}} props */
function Line({ budget, drop }) {
  const whose = budget.scope === "app" ? "" : ` · ${budget.scope} ${budget.id}`;
  const parts = [
    ["Tokens", budget.max_tokens, budget.spent.tokens, budget.estimated.tokens, sayCount],
    ["Cost", budget.max_cost_usd, budget.spent.cost_usd, budget.estimated.cost_usd, sayMoney],
  ].filter(([, most]) => most !== null);
  return html`<li class="card budget">
    <div class="row">
      <strong class="grow wrap">${showHidden(budget.app_name)}${showHidden(whose)}</strong>
      <span class="chip">${/** @type {any} */ (PERIODS)[budget.period]}</span>${budget.warned && html`<span class="chip warn">warned</span>`}
      <button class="button bad" onClick=${drop}>Remove</button>
    </div>
    ${parts.map(
      ([name, most, spent, guess, say]) => html`<div class="spent small">
        <span>${name}: ${say(spent)} of ${say(most)} reported${guess > 0 ? `, ${say(guess)} estimated beside it` : ""}</span>
        <meter aria-label=${`${name} spent`} value=${most > 0 ? Math.min(1, spent / most) : 1} max="1" high=${budget.warn_at}></meter>
      </div>`,
    )}
    <p class="hint">Then: ${/** @type {any} */ (THEN)[budget.then]}.${budget.period_ends ? ` Begins anew ${sayTime(budget.period_ends)}.` : ""}</p>
  </li>`;
}

/** @param {{close: () => void, done: () => void}} props */
function NewBudget({ close, done }) {
  const submit = async (/** @type {SubmitEvent} */ event) => {
    const body = readForm(event, ["max_tokens", "max_cost_usd"]);
    if (await attempt(() => call("PUT", "/admin/budgets", { body }), "The budget is set.")) done();
  };
  return html`<${Dialog} title="New budget" onClose=${close}>
    <form onSubmit=${submit}>
      <h2>New budget</h2>
      <label class="field"><span class="name">App</span><input type="text" name="app_name" required maxlength="128" /></label>
      <div class="fields">
        <label class="field"><span class="name">Most tokens</span><input type="number" name="max_tokens" min="0" /></label>
        <label class="field"><span class="name">Most dollars</span><input type="number" name="max_cost_usd" min="0" step="any" /></label>
        <label class="field"><span class="name">For</span><select name="period">${Object.entries(PERIODS).map(([key, title]) => html`<option value=${key}>${title}</option>`)}</select></label>
        <label class="field"><span class="name">When nothing is left</span><select name="then">${Object.entries(THEN).map(([key, title]) => html`<option value=${key}>${title}</option>`)}</select></label>
      </div>
      <p class="hint">The same app and period replace what was set before.</p>
      <div class="buttons"><button type="button" class="button" onClick=${close}>Cancel</button><button class="button main">Save</button></div>
    </form>
  <//>`;
}
