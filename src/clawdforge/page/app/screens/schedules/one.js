// @ts-check
// One schedule: when it comes, what it says, its rules, and what became of each of its times.
import { html, useRef } from "../../lib.js";
import { Icon } from "../../shell/icons.js";
import { go, link } from "../../shell/router.js";
import { Trouble, useLoad } from "../loading.js";
import { showHidden } from "../words.js";
import { loadSchedule, nameOf, useLatest } from "./actions.js";
import { Became, Buttons, Next, Standing, Times, Turn, Where } from "./parts.js";
import { MISSED, OVERLAPS } from "./rules.js";
import { Moment } from "./times.js";

const PAGE = 50;
const MOST = 1000;

/** @param {{id: string}} props */
export function One({ id }) {
  const count = useRef(PAGE);
  const { value, error, busy, again } = useLoad((stop) => loadSchedule(id, count.current, stop), [id]);
  useLatest(again, busy);
  const row = value?.schedule;
  const more = () => ((count.current = Math.min(MOST, count.current * 4)), again());
  return html`<header class="head">
      <a class="icon-button" href=${link("schedules")} aria-label="All schedules"><${Icon} name="back" /></a>
      <h1 class="grow cut" id="schedule-name">${row ? showHidden(nameOf(row)) : "Schedule"}</h1>
      ${row && html`<${Standing} row=${row} />`}
    </header>
    <div class="scroll" tabindex="0" role="region" aria-label="Schedule" aria-busy=${String(!value && !error)}>
      <div class="page stack">
        ${error && html`<${Trouble} error=${error} again=${again} />`}
        ${
          row &&
          html`<${Facts} row=${row} coming=${value.coming} />
          <${Buttons} row=${row} about="schedule-name" again=${again} gone=${() => go(link("schedules"), true)} />
          <section class="stack tight" aria-label="Prompt"><h2>Prompt</h2><pre class="schedule-prompt wrap" tabindex="0">${showHidden(row.prompt)}</pre></section>
          <section class="stack tight" aria-label="History">
            <h2>History</h2>
            ${value.history.length ? html`<${History} rows=${value.history} zone=${row.timezone} />` : html`<p class="quiet">None of its times has come yet.</p>`}
            ${value.more && html`<div><button class="button" disabled=${busy} onClick=${more}>Show more</button></div>`}
          </section>`
        }
      </div>
    </div>`;
}

/** @param {{row: import("./actions.js").Schedule, coming: number[]}} props */
function Facts({ row, coming }) {
  const say = (/** @type {string[][]} */ words, /** @type {string} */ name) => words.find((one) => one[0] === name)?.[1] ?? name;
  return html`<dl class="schedule-facts card">
    <div><dt>When</dt><dd><${Times} row=${row} />${row.cron && html` <code class="quiet">${row.cron}</code>`}</dd></div>
    <div><dt>Next</dt><dd>${coming.length > 1 ? html`<ol>${coming.map((at) => html`<li key=${at}><${Moment} at=${at} zone=${row.timezone} /></li>`)}</ol>` : html`<${Next} row=${row} />`}</dd></div>
    <div><dt>Where</dt><dd><${Where} row=${row} /></dd></div>
    <div><dt>Overlap</dt><dd>${say(OVERLAPS, row.overlap)}</dd></div>
    <div><dt>Missed</dt><dd>${say(MISSED, row.missed)}</dd></div>
  </dl>`;
}

/** @param {{rows: import("./actions.js").Occurrence[], zone: string}} props */
function History({ rows, zone }) {
  return html`<table class="stacks">
    <thead><tr><th scope="col">Time</th><th scope="col">What became of it</th><th scope="col">Turn</th></tr></thead>
    <tbody>
      ${rows.map(
        (one) => html`<tr key=${one.occurrence_id}>
          <td data-name="Time"><span><${Moment} at=${one.planned_at} zone=${zone} /></span></td>
          <td data-name="What became of it"><span><${Became} one=${one} />${one.by_hand ? " by hand" : ""}${one.missed ? ` ${one.missed} missed before` : ""}</span></td>
          <td data-name="Turn"><span><${Turn} one=${one} /></span></td>
        </tr>`,
      )}
    </tbody>
  </table>`;
}
