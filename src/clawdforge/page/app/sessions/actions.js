// @ts-check
// What is done with sessions: list, make, rename, pin, close, delete.
import { batch } from "../lib.js";
import { Failure, get, newKey, patch, post, remove } from "../api/client.js";
import {
  currentId, dropSession, keepSessions, notify, sessionFilter, sessionOrder, sessions, sessionsNext,
} from "../store.js";
import { go, link } from "../shell/router.js";

const PAGE = 50;

/** Load the list from its beginning; what is already shown stays until the answer is here. After a reset the server may have
 * gone back, so that what it says is true however old it is. @param {boolean} [isReset] */
export async function loadSessions(isReset = false) {
  const q = sessionFilter.value.trim();
  const reply = await get("/sessions", { limit: PAGE, q });
  if (isReset) sessions.value = new Map(Array.from(sessions.value, ([id, row]) => [id, { ...row, updated_us: 0 }]));
  if (q !== sessionFilter.value.trim()) return;
  batch(() => {
    keepSessions(reply.sessions);
    sessionOrder.value = reply.sessions.map((/** @type {any} */ row) => row.session_id);
    sessionsNext.value = reply.next;
  });
}

export async function loadMoreSessions() {
  if (!sessionsNext.value) return;
  const reply = await get("/sessions", { limit: PAGE, q: sessionFilter.value.trim(), cursor: sessionsNext.value });
  batch(() => {
    keepSessions(reply.sessions);
    const known = new Set(sessionOrder.value);
    const more = reply.sessions.map((/** @type {any} */ row) => row.session_id).filter((/** @type {string} */ id) => !known.has(id));
    sessionOrder.value = [...sessionOrder.value, ...more];
    sessionsNext.value = reply.next;
  });
}

/** Take in rows that have changed, each where the list has it. @param {import("../store.js").Session[]} rows */
export function placeSessions(rows) {
  keepSessions(rows);
  const known = sessions.value;
  const order = sessionOrder.value;
  const wanted = sessionFilter.value.trim().toLowerCase();
  const last = sessionsNext.value ? known.get(order[order.length - 1]) : undefined;
  const fits = (/** @type {import("../store.js").Session} */ row) => row.live && row.title.toLowerCase().includes(wanted);
  const isShown = (/** @type {import("../store.js").Session} */ row) =>
    fits(row) && (!last || !isBefore(last, row));
  const changed = new Set(rows.map((row) => row.session_id));
  const kept = order.filter((id) => !changed.has(id));
  const placed = rows.filter((row) => (order.includes(row.session_id) && fits(row)) || isShown(row));
  const ids = [...new Set([...kept, ...placed.map((row) => row.session_id)])];
  const found = ids.map((id) => known.get(id)).filter((row) => row !== undefined);
  sessionOrder.value = found.sort((a, b) => (isBefore(a, b) ? -1 : 1)).map((row) => row.session_id);
}

/** The last used first, as the server lists them. @param {import("../store.js").Session} a @param {import("../store.js").Session} b */
const isBefore = (a, b) => a.updated_us > b.updated_us || (a.updated_us === b.updated_us && a.session_id > b.session_id);

/** The newest row of one session. @param {string} id */
export async function refreshSession(id) {
  keepSessions([await get(`/sessions/${encodeURIComponent(id)}`)]);
}

/** @param {Record<string, unknown>} body */
export async function makeSession(body) {
  const row = await post("/sessions", body, newKey());
  placeSessions([row]);
  go(link("s", row.session_id));
  return row;
}

/** @param {string} id @param {Record<string, unknown>} change */
export async function changeSession(id, change) {
  await tell(async () => keepSessions([await patch(`/sessions/${encodeURIComponent(id)}`, change)]));
}

/** Keep a session until somebody deletes it. What refuses it is raised. @param {string} id */
export async function keepForGood(id) {
  keepSessions([await patch(`/sessions/${encodeURIComponent(id)}`, { retention: "keep" })]);
}

/** Close an open session, or open a closed one again. @param {import("../store.js").Session} row */
export async function openOrClose(row) {
  const path = `/sessions/${encodeURIComponent(row.session_id)}`;
  await tell(async () => {
    await (row.live ? remove(path) : post(`${path}/reopen`));
    await refreshSession(row.session_id);
    notify(row.live ? "The session is closed. Search finds it, and it can be opened again." : "The session is open again.");
  });
}

/** Delete a session with everything that belongs to it. @param {string} id */
export async function purgeSession(id) {
  await tell(async () => {
    await post(`/sessions/${encodeURIComponent(id)}/purge`);
    if (currentId.value === id) go(link(""));
    dropSession(id);
    notify("The session is deleted.");
  });
}

/** Do it, or say why not. @template T @param {() => Promise<T>} work @returns {Promise<T|null>} */
export async function tell(work) {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    notify(error.message, "bad");
    return null;
  }
}

/** @param {string} id */
export const titleOf = (id) => sessions.value.get(id)?.title || "New session";
