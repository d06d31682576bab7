// @ts-check
// What is done with sessions: list, watch, make, rename, pin, close, delete.
import { batch, effect, untracked } from "../lib.js";
import { Failure, get, newKey, patch, post } from "../api/client.js";
import {
  currentId, dropSession, keepSessions, me, notify, sessionFilter, sessionOrder, sessions, sessionsNext,
} from "../store.js";
import { go, link } from "../shell/router.js";

const PAGE = 50;
const EVERY_MS = 5000;

/** Load the list from its beginning; what is already shown stays until the answer is here. */
export async function loadSessions() {
  const q = sessionFilter.value.trim();
  const reply = await get("/sessions", { limit: PAGE, q });
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

/** Keep the list true while the page is seen. */
export function watchSessions() {
  /** @type {any} */
  let timer;
  const again = async () => {
    clearTimeout(timer);
    if (!me.value || isOnlyOperator() || document.hidden) return;
    await loadSessions().catch(() => null);
    timer = setTimeout(again, EVERY_MS);
  };
  effect(() => {
    const who = me.value;
    void sessionFilter.value;
    if (who) untracked(again);
  });
  document.addEventListener("visibilitychange", again);
}

/** Whoever logged in as the operator alone has no sessions. */
const isOnlyOperator = () => Boolean(me.value?.operator) && !me.value?.app_name;

/** The newest row of one session. @param {string} id */
export async function refreshSession(id) {
  keepSessions([await get(`/sessions/${encodeURIComponent(id)}`)]);
}

/** @param {Record<string, unknown>} body */
export async function makeSession(body) {
  const row = await post("/sessions", body, newKey());
  keepSessions([row]);
  sessionOrder.value = [row.session_id, ...sessionOrder.value];
  go(link("s", row.session_id));
  return row;
}

/** @param {string} id @param {Record<string, unknown>} change */
export async function changeSession(id, change) {
  await tell(async () => keepSessions([await patch(`/sessions/${encodeURIComponent(id)}`, change)]));
}

/** A link that reads what has been said until now. @param {string} id */
export const shareSession = (id) => tell(() => post(`/sessions/${encodeURIComponent(id)}/shares`));

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
