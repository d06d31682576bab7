// @ts-check
// Tokens and cost over days, by agent or model; for the operator also by app.
import { get } from "../../api/client.js";
import { html, useState } from "../../lib.js";
import { me } from "../../store.js";
import { Trouble, useLoad } from "../loading.js";
import { OwnLimits } from "../shares.js";
import { sayCount, sayMoney } from "../words.js";
import { Legend, StackedBars } from "./bars.js";
import { writeCsv } from "./csv.js";
import { MEASURES, dayAgo, sumDays } from "./sums.js";
import { UsageTable } from "./table.js";

const SPANS = { 7: "7 days", 30: "30 days", 90: "90 days", 365: "A year" };
const MOST_PAGES = 30;
const NAMES = { agent: "Agent", model: "Model", app: "App" };

export default function Usage() {
  const ofAll = !me.value?.app_name && Boolean(me.value?.operator);
  const [back, setBack] = useState(30);
  const [by, setBy] = useState(ofAll ? "app" : "agent");
  const [measure, setMeasure] = useState("total_tokens");
  const from = dayAgo(back - 1);
  const to = dayAgo(0);
  const { value, error, busy, again } = useLoad(
    (signal) => loadRows(ofAll ? "/admin/usage" : "/usage", { by: `day,agent,model${ofAll ? ",app" : ""}`, from, to }, signal),
    [ofAll, from, to],
  );
  const limits = useLoad((signal) => (ofAll ? Promise.resolve(null) : get("/limits", {}, signal)), [ofAll]);
  const rows = value?.rows ?? [];
  const reported = sumDays(rows, by, "reported", measure, from, to);
  const estimated = sumDays(rows, by, "estimated", measure, from, to);
  const names = reported.most >= estimated.most ? reported.names : estimated.names;
  const say = measure === "cost_usd" ? sayMoney : sayCount;
  const order = (/** @type {typeof reported} */ summed) => ({ ...summed, names });
  return html`<header class="head">
      <h1 class="grow">Usage</h1>
      <button class="button" disabled=${!rows.length} onClick=${() => save(writeCsv(rows), `usage-${from}-${to}.csv`)}>Download CSV</button>
    </header>
    <div class="scroll" tabindex="0" role="region" aria-label="Usage" aria-busy=${String(busy)}>
      <div class="page stack">
        <div class="choices">
          <${Choice} name="Period" value=${back} options=${SPANS} set=${(/** @type {string} */ value) => setBack(Number(value))} />
          <${Choice} name="Split by" value=${by} options=${ofAll ? NAMES : { agent: NAMES.agent, model: NAMES.model }} set=${setBy} />
          <${Choice} name="Show" value=${measure} options=${MEASURES} set=${setMeasure} />
        </div>
        ${error && html`<${Trouble} error=${error} again=${again} />`}
        ${
          value &&
          html`<${Legend} names=${names} />
          <${StackedBars} title=${measure === "turns" ? "Turns" : "Reported by agents"} summed=${order(reported)} say=${say} />
          ${measure !== "turns" && html`<div class="estimates"><${StackedBars} title="Estimated from the text" quiet summed=${order(estimated)} say=${say} /></div>`}
          <${UsageTable} rows=${rows} by=${by} title=${/** @type {any} */ (NAMES)[by]} />
          ${value.more && html`<p class="hint">There are more numbers than are shown here; a shorter time has all of them.</p>`}
          <p class="hint">Days are counted in UTC. What agents report and what is estimated from the text are never added to each other.</p>`
        }
        ${limits.value && html`<${OwnLimits} limits=${limits.value} />`}
      </div>
    </div>`;
}

/**
 * All pages of it, up to a bound: an app can have as many models as it has turns.
 * @param {string} path @param {Record<string, string>} query @param {AbortSignal} signal
 * @returns {Promise<{rows: any[], more: boolean}>}
 */
async function loadRows(path, query, signal) {
  const rows = [];
  let cursor = null;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const found = await get(path, { ...query, cursor }, signal);
    rows.push(...found.rows);
    cursor = found.next;
    if (!cursor) break;
  }
  return { rows, more: Boolean(cursor) };
}

/** @param {{name: string, value: unknown, options: Record<string, string>, set: (value: string) => void}} props */
function Choice({ name, value, options, set }) {
  return html`<label class="choice small">
    <span class="quiet">${name}</span>
    <select value=${String(value)} onChange=${(/** @type {any} */ event) => set(event.target.value)}>
      ${Object.entries(options).map(([key, title]) => html`<option value=${key} selected=${key === String(value)}>${title}</option>`)}
    </select>
  </label>`;
}

/** @param {string} text @param {string} name */
function save(text, name) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  const anchor = document.createElement("a");
  anchor.href = url;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
