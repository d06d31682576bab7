// @ts-check
// The one state of the page. Components read these signals; `actions` of each folder write them.
import { computed, signal } from "./lib.js";

/**
 * @typedef {{app_name: string|null, scopes: string[], operator: boolean, version: string}} Me
 * @typedef {{session_id: string, title: string, agent: string, model: string|null, state: string, live: boolean,
 *   pinned: boolean, updated_at: number, updated_us: number, created_at: number, running_turn: number|null, queued_turns: number,
 *   activity?: string, pending_permissions?: number, last_outcome?: string|null, permission_mode: string,
 *   retention: string, closes_at: number|null, deletes_at: number|null, workspace: string, head: number,
 *   message_count: number, turn_count: number, labels: string[], mcp_servers?: string[], forked_from: string|null, plan_mode: boolean, paused?: boolean, can_redo?: boolean}} Session
 * @typedef {{name: string, parts: string[], query: URLSearchParams}} Route
 * @typedef {{id: number, text: string, kind: "note"|"bad"}} Notice
 * @typedef {{state: "live"|"idle"|"reading"|"waiting"|"offline"|"gone", text: string}} Status
 */

/** Who is logged in: undefined while nobody knows, null when nobody is. */
export const me = signal(/** @type {Me|null|undefined} */ (undefined));

/** Where the address leads. */
export const route = signal(/** @type {Route} */ ({ name: "", parts: [], query: new URLSearchParams() }));

/** Sessions that are known, by id; the list shows `sessionOrder` of them. */
export const sessions = signal(/** @type {Map<string, Session>} */ (new Map()));
export const sessionOrder = signal(/** @type {string[]} */ ([]));
export const sessionsNext = signal(/** @type {string|null} */ (null));
export const sessionFilter = signal("");

/** The session on the screen, or null. */
export const currentId = computed(() => (route.value.name === "s" ? route.value.parts[0] || null : null));
export const current = computed(() => (currentId.value ? sessions.value.get(currentId.value) || null : null));

/** The line at the bottom: how the stream stands. */
export const status = signal(/** @type {Status} */ ({ state: "idle", text: "" }));

/** What waits for a person, over all sessions; the tab's title counts it. */
export const waiting = signal(/** @type {any[]} */ ([]));

export const notices = signal(/** @type {Notice[]} */ ([]));
export const panelOpen = signal(matchMedia("(min-width: 1200px)").matches);

let lastNotice = 0;

/** Say something to the person for a while. @param {string} text @param {"note"|"bad"} [kind] */
export function notify(text, kind = "note") {
  const id = ++lastNotice;
  notices.value = [...notices.value.slice(-3), { id, text, kind }];
  setTimeout(() => dismiss(id), kind === "bad" ? 12000 : 6000);
}

/** @param {number} id */
export function dismiss(id) {
  notices.value = notices.value.filter((notice) => notice.id !== id);
}

/** Take in rows of sessions, newer over older: an answer may come after the stream has told more. @param {Session[]} rows */
export function keepSessions(rows) {
  const next = new Map(sessions.value);
  for (const row of rows) {
    const known = next.get(row.session_id);
    if (!known || known.updated_us <= row.updated_us) next.set(row.session_id, { ...known, ...row });
  }
  sessions.value = next;
}

/** Forget a session that is gone. @param {string} id */
export function dropSession(id) {
  const next = new Map(sessions.value);
  next.delete(id);
  sessions.value = next;
  sessionOrder.value = sessionOrder.value.filter((known) => known !== id);
}

/** What a session does, also on a server that does not say it yet. @param {Session} row */
export function activityOf(row) {
  if (row.activity) return row.activity;
  if (row.running_turn !== null) return "running";
  return row.queued_turns > 0 ? "queued" : "idle";
}
