// @ts-check
// What the list and the screen of one schedule share: its buttons, how it stands, its next time, what became of a time.
import { html, useRef, useState } from "../../lib.js";
import { link } from "../../shell/router.js";
import { sessions } from "../../store.js";
import { sayOutcome, showHidden, toneOf } from "../words.js";
import { drop, pauseOrResume, runNow } from "./actions.js";
import { ScheduleForm } from "./form.js";
import { Moment } from "./times.js";

/** @type {Record<string, string[]>} */
const BECAME = { skipped: ["left out", "warn"], missed: ["missed", "warn"], refused: ["refused", "bad"], submitted: ["sent", ""] };

/** What became of a time: a word in its colour. @param {{one: import("./actions.js").Occurrence}} props */
export function Became({ one }) {
  const turn = one.turn_state && { state: one.turn_state, outcome: one.outcome };
  const [word, tone] = turn ? [sayOutcome(turn), toneOf(turn)] : (BECAME[one.state] ?? [one.state, ""]);
  return html`<span class=${`chip ${tone}`}>${word}</span>`;
}

/** The turn that it made, or why there is none. @param {{one: import("./actions.js").Occurrence}} props */
export function Turn({ one }) {
  if (one.state === "submitted" && one.turn_state && one.session_id) return html`<a href=${link("s", one.session_id)}>Turn ${one.turn_index}</a>`;
  if (one.state === "submitted") return html`<span class="quiet">its session is gone</span>`;
  return html`<span class="wrap">${showHidden(one.error ?? "nobody was there to run it")}</span>`;
}

/** On has no word: its next time says it. @param {{row: import("./actions.js").Schedule}} props */
export function Standing({ row }) {
  if (row.state === "on") return null;
  return html`<span class="chip">${row.state}</span>`;
}

/** What can be done with it; `about` is the element that names it. @param {{row: import("./actions.js").Schedule, about: string, again: () => void, gone: () => void}} props */
export function Buttons({ row, about, again, gone }) {
  const busy = useRef(false); // a button that is off would lose the focus
  const [editing, setEditing] = useState(false);
  const after = (/** @type {(row: import("./actions.js").Schedule) => Promise<any>} */ work) => async () => {
    if (busy.current) return;
    busy.current = true;
    await work(row);
    busy.current = false;
    again();
  };
  const removed = async () => void ((await drop(row)) && gone());
  return html`<div class="ask-buttons">
    <button class="button" aria-describedby=${about} onClick=${after(runNow)}>Run now</button>
    ${row.state !== "ended" && html`<button class="button" aria-describedby=${about} onClick=${after(pauseOrResume)}>${row.state === "on" ? "Pause" : "Resume"}</button>`}
    <button class="button" aria-describedby=${about} onClick=${() => setEditing(true)}>Change …</button>
    <button class="button bad" aria-describedby=${about} onClick=${removed}>Remove …</button>
    ${editing && html`<${ScheduleForm} row=${row} close=${() => setEditing(false)} done=${() => (setEditing(false), again())} />`}
  </div>`;
}

/** @param {{row: import("./actions.js").Schedule}} props */
export function Times({ row }) {
  if (row.cron !== null) return html`${row.in_words || row.cron}, ${row.timezone}`;
  return row.state === "on" || row.at === null ? "Once" : html`Once, <${Moment} at=${row.at} zone=${row.timezone} />`;
}

/** @param {{row: import("./actions.js").Schedule}} props */
export function Next({ row }) {
  if (row.next_at !== null) return html`<${Moment} at=${row.next_at} zone=${row.timezone} />`;
  return html`<span class="quiet">${row.state === "paused" ? "not until it is resumed" : `none: ${showHidden(row.reason ?? "it has ended")}`}</span>`;
}

/** @param {{row: import("./actions.js").Schedule}} props */
export function Where({ row }) {
  const id = row.session_id;
  if (id) return html`<a class="wrap" href=${link("s", id)}>${showHidden(sessions.value.get(id)?.title || "a session of yours")}</a>`;
  return html`a new session each time${row.session?.agent ? `, with ${showHidden(row.session.agent)}` : ""}`;
}
