// @ts-check
// Keeps the list of sessions and what waits up to date, by what the server tells of the app.
import { batch, computed, effect, untracked } from "../lib.js";
import { dropSession, me, sessionFilter, waiting } from "../store.js";
import { loadSessions, placeSessions } from "../sessions/actions.js";
import { refresh, take as takePermission } from "../screens/inbox/actions.js";
import { followChanges } from "../stream/link.js";

const AGAIN_MS = 1000;

/** Whose list it is; whoever logged in as the operator alone has none. */
const whose = computed(() => (me.value && (me.value.app_name || !me.value.operator) ? me.value : null));

/** Call once, when the page starts. */
export function watchApp() {
  let ended = () => {};
  effect(() => {
    const who = whose.value;
    ended();
    if (!who) return void (waiting.value = []);
    let isOver = false;
    const stop = followChanges((changes) => take(changes, () => isOver));
    ended = () => ((isOver = true), stop());
  });
  let filter = "";
  effect(() => {
    if (sessionFilter.value === filter) return;
    filter = sessionFilter.value;
    untracked(() => loadSessions().catch(() => null));
  });
}

/** @param {any[]} changes @param {() => boolean} isOver */
async function take(changes, isOver) {
  batch(() => {
    /** @type {Map<string, import("../store.js").Session>} */
    const rows = new Map();
    for (const change of changes) {
      if (change.type === "session") rows.set(change.session.session_id, change.session);
      else if (change.type === "permission") takePermission(change.permission);
      else if (change.type === "session.deleted") forget(rows, change.session_id);
    }
    if (rows.size) placeSessions([...rows.values()]);
  });
  const isReset = changes.some((change) => change.type === "reset");
  const isNew = isReset || changes.some((change) => change.type === "cursor");
  while (isNew && !isOver() && !(await readAll(isReset))) await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
}

/** A session that is gone asks nobody any more. @param {Map<string, any>} rows @param {string} id */
function forget(rows, id) {
  rows.delete(id);
  dropSession(id);
  waiting.value = waiting.value.filter((one) => one.session_id !== id);
}

/** Everything anew; false if the server could not be reached. @param {boolean} isReset */
async function readAll(isReset) {
  const found = await Promise.allSettled([loadSessions(isReset), refresh()]);
  return found.every((one) => one.status === "fulfilled" || one.reason.status);
}
