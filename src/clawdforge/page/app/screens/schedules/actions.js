// @ts-check
// What is done with schedules: read, made, changed, paused, run, removed. The server's sentences say what went wrong.
import { effect, useEffect, useRef } from "../../lib.js";
import { get, newKey, patch, post, remove } from "../../api/client.js";
import { tell } from "../../sessions/actions.js";
import { ask } from "../../shell/dialog.js";
import { notify, sessions } from "../../store.js";

/**
 * @typedef {{occurrence_id: string, planned_at: number, noted_at: number, by_hand: boolean, state: string, missed: number,
 *   session_id: string|null, turn_index: number|null, turn_state: string|null, outcome: string|null, error: string|null}} Occurrence
 * @typedef {{schedule_id: string, title: string, prompt: string, cron: string|null, in_words: string|null, at: number|null,
 *   timezone: string, session_id: string|null, session: any, overlap: string, missed: string, state: string, reason: string|null,
 *   next_at: number|null, last: Occurrence|null, created_at: number}} Schedule
 */

const PAGE = 100;
const SOON_MS = 700;
const EVERY_MS = 10_000;

/** @param {string} id */
const pathOf = (id) => `/schedules/${encodeURIComponent(id)}`;

/** @param {AbortSignal} stop @returns {Promise<Schedule[]>} */
export async function loadSchedules(stop) {
  const found = [];
  let cursor;
  do {
    const page = await get("/schedules", { limit: PAGE, cursor }, stop);
    found.push(...page.schedules);
    cursor = page.next;
  } while (cursor);
  return found;
}

/** One with its history, and the times that come. @param {string} id @param {number} count @param {AbortSignal} stop */
export async function loadSchedule(id, count, stop) {
  const [{ schedule }, history] = await Promise.all([get(pathOf(id), {}, stop), get(`${pathOf(id)}/history`, { limit: count }, stop)]);
  const coming = schedule.state === "on" && schedule.cron ? (await preview(schedule)).times : [];
  return { schedule: /** @type {Schedule} */ (schedule), history: /** @type {Occurrence[]} */ (history.occurrences), more: Boolean(history.next), coming };
}

/** @param {{cron?: string|null, at?: string|number|null, timezone: string}} times @returns {Promise<{in_words: string|null, times: number[]}>} */
export const preview = ({ cron, at, timezone }) => post("/schedules/preview", cron == null ? { at, timezone } : { cron, timezone });

/** @param {Record<string, unknown>} body @param {Schedule|null} row what is changed; null for a new one */
export const save = (body, row) => (row ? patch(pathOf(row.schedule_id), body) : post("/schedules", body));

/** @param {Schedule} row */
export const pauseOrResume = (row) =>
  tell(async () => {
    await patch(pathOf(row.schedule_id), { paused: row.state === "on" });
    notify(row.state === "on" ? "It is paused: its times pass, and nothing is run." : "It goes on with its next time.");
  });

/** @param {Schedule} row */
export const runNow = (row) =>
  tell(async () => {
    await post(`${pathOf(row.schedule_id)}/run`, {}, newKey());
    notify("It runs now. Its history leads to the session.");
  });

/** True if it is gone. @param {Schedule} row */
export async function drop(row) {
  const yes = await ask({
    title: `Remove “${nameOf(row)}”?`,
    text: "Nothing more is run, and its history is gone for good. The sessions and turns that it made stay.",
    yes: "Remove",
    bad: true,
  });
  if (!yes) return false;
  const done = await tell(async () => (await remove(pathOf(row.schedule_id)), true));
  if (done) notify("It is removed.");
  if (done) document.getElementById("stage")?.focus(); // what had the focus is gone
  return Boolean(done);
}

/** @param {Schedule} row */
export const nameOf = (row) => row.title || row.prompt.trim().split("\n", 1)[0].slice(0, 120);

/** Look again when a session has changed, which may be by a schedule, when the tab is seen again, and now and then.
 * @param {() => void} again @param {boolean} busy */
export function useLatest(again, busy) {
  const latest = useRef({ again, busy });
  latest.current = { again, busy };
  useEffect(() => {
    let timer = 0;
    const look = () => {
      timer = 0;
      if (document.hidden) return;
      if (latest.current.busy) soon();
      else latest.current.again();
    };
    const soon = () => void (timer ||= setTimeout(look, SOON_MS));
    let isFirst = true;
    const stop = effect(() => {
      void sessions.value;
      if (!isFirst) soon();
      isFirst = false;
    });
    const often = setInterval(soon, EVERY_MS);
    document.addEventListener("visibilitychange", soon);
    return () => {
      stop();
      clearInterval(often);
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", soon);
    };
  }, []);
}
