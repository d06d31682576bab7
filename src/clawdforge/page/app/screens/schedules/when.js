// @ts-check
// The fields that say when: how often, at what time, in which zone; and the next times, as the server counts them.
import { html, useMemo } from "../../lib.js";
import { useLoad } from "../loading.js";
import { preview } from "./actions.js";
import { DAYS, KINDS, writePattern } from "./pattern.js";
import { Moment, knownZones } from "./times.js";

const TYPED_MS = 250;

/**
 * @typedef {{value: import("./pattern.js").Pattern, set: (change: Partial<import("./pattern.js").Pattern>) => void}} Props
 * @param {Props} props
 */
export function When({ value, set }) {
  const zones = useMemo(knownZones, []);
  return html`<fieldset class="checks">
    <legend class="small">When</legend>
    <div class="fields">
      <label class="field"><span class="name">How often</span>
        <select name="kind" value=${value.kind} onChange=${(/** @type {any} */ event) => set({ kind: event.target.value })}>
          ${KINDS.map(([name, words]) => html`<option value=${name} key=${name} selected=${name === value.kind}>${words}</option>`)}
        </select></label>
      <${Which} value=${value} set=${set} />
      <label class="field"><span class="name">Time zone</span>
        <input type="text" name="zone" list="zones" value=${value.zone} spellcheck="false" autocomplete="off" onInput=${(/** @type {any} */ event) => set({ zone: event.target.value })} />
        <datalist id="zones">${zones.map((name) => html`<option value=${name} key=${name}></option>`)}</datalist></label>
    </div>
    <${Coming} value=${value} />
  </fieldset>`;
}

/** The fields of the chosen kind. @param {Props} props */
function Which({ value, set }) {
  const field = (/** @type {keyof import("./pattern.js").Pattern} */ key, /** @type {string} */ name, /** @type {string} */ type, /** @type {any} */ more = {}) =>
    html`<label class="field" key=${key}><span class="name">${name}</span>
      <input type=${type} name=${key} value=${value[key]} required ...${more} onInput=${(/** @type {any} */ event) => set({ [key]: event.target.value })} /></label>`;
  const time = field("time", "Time", "time");
  if (value.kind === "hour") return field("minute", "Minute", "number", { min: 0, max: 59 });
  if (value.kind === "once") return field("at", "Day and time", "datetime-local");
  if (value.kind === "month") return html`${field("date", "Day of the month", "number", { min: 1, max: 31 })}${time}`;
  if (value.kind === "cron") {
    return html`<label class="field"><span class="name">Cron</span>
      <input type="text" name="cron" class="mono" value=${value.cron} required maxlength="200" spellcheck="false" autocomplete="off" onInput=${(/** @type {any} */ event) => set({ cron: event.target.value })} />
      <span class="hint">Minute, hour, day of the month, month, day of the week.</span></label>`;
  }
  if (value.kind !== "week") return time;
  return html`<label class="field"><span class="name">Day</span>
      <select name="day" value=${value.day} onChange=${(/** @type {any} */ event) => set({ day: event.target.value })}>
        ${DAYS.map(([name, words]) => html`<option value=${name} key=${name} selected=${name === value.day}>${words}</option>`)}
      </select></label>${time}`;
}

/** @param {{value: import("./pattern.js").Pattern}} props */
function Coming({ value }) {
  const times = writePattern(value);
  const found = useLoad(async (stop) => {
    await new Promise((resolve) => setTimeout(resolve, TYPED_MS)); // not with every key
    return stop.aborted ? null : preview(times);
  }, [times]);
  const many = (found.value?.times.length ?? 0) > 1;
  return html`<div class="coming small" role="status" aria-busy=${String(found.busy)}>
    ${found.error && html`<p class="problem">${found.error.message}</p>`}
    ${
      found.value &&
      html`<p>${found.value.in_words ?? "Once"}. ${many ? "The next times:" : "The time:"}</p>
      <ol>${found.value.times.map((at) => html`<li key=${at}><${Moment} at=${at} zone=${times.timezone} /></li>`)}</ol>`
    }
  </div>`;
}
