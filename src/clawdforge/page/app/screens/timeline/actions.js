// @ts-check
// Reads a turn and its events, up to a bound that no person would look through.
import { get } from "../../api/client.js";

const PAGE = 1000;
const MOST = 20_000;

/** @param {string} id @param {number} index @param {AbortSignal} signal */
export async function loadTurn(id, index, signal) {
  const page = await get(`/sessions/${id}/turns`, { after: index - 1, limit: 1 }, signal);
  const turn = page.turns[0];
  if (!turn || turn.turn_index !== index) return null;
  const { events, whole } = await loadEvents(id, turn, signal);
  return { turn, events, whole };
}

/** @param {string} id @param {any} turn @param {AbortSignal} signal */
async function loadEvents(id, turn, signal) {
  /** @type {any[]} */
  const events = [];
  if (turn.first_seq === null) return { events, whole: true };
  let after = Math.max(0, turn.first_seq - 1);
  for (let read = 0; read < MOST;) {
    const page = await get(`/sessions/${id}/events`, { after, limit: PAGE, form: "compact" }, signal);
    read += page.events.length;
    events.push(...page.events.filter((/** @type {any} */ event) => event.turn === turn.turn_index));
    after = page.next;
    const past = turn.last_seq !== null && after >= turn.last_seq;
    if (past || !page.events.length || page.events.length < PAGE) return { events, whole: true };
  }
  return { events, whole: false };
}

/** How full the agent's memory was at the end, if it says so. @param {any[]} events */
export function readContext(events) {
  const last = events.findLast((event) => event.type === "usage" && event.update?.size > 0);
  return last ? { used: Number(last.update.used) || 0, size: Number(last.update.size) } : null;
}
