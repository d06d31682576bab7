// @ts-check
// Time travel: what can be done from a turn of the past. Every step carries the head that was seen, so that two do not mix.
import { get, post } from "../../api/client.js";
import { notify } from "../../store.js";
import { ask } from "../../shell/dialog.js";
import { go, link } from "../../shell/router.js";
import { refreshSession } from "../../sessions/actions.js";
import { guessTree, turnsAfter } from "./lanes.js";

const PAGE = 500;
const MOST = 10_000;

/** @param {string} id @param {AbortSignal} signal */
export async function loadTree(id, signal) {
  try {
    return await loadAll(`/sessions/${id}/tree`, signal);
  } catch (/** @type {any} */ failure) {
    if (failure.status !== 404 && failure.status !== 405) throw failure;
    const found = await loadAll(`/sessions/${id}/turns`, signal); // a server without trees
    return { ...found, turns: guessTree(found.turns) };
  }
}

/** @param {string} path @param {AbortSignal} signal */
async function loadAll(path, signal) {
  /** @type {any[]} */
  const turns = [];
  let page;
  let after;
  do {
    page = await get(path, { after, limit: PAGE }, signal);
    turns.push(...page.turns);
    after = page.next;
  } while (after !== null && after !== undefined && turns.length < MOST);
  return { forked_from: page.forked_from ?? null, turns, whole: after == null };
}

/** Show a turn where it stands in the transcript. @param {import("../../store.js").Session} session @param {import("./lanes.js").TreeTurn} turn */
export function view(session, turn) {
  return attempt(async () => {
    const path = `/sessions/${session.session_id}`;
    const [found] = (await get(`${path}/turns`, { after: turn.turn_index - 1, limit: 1 })).turns;
    const page = found?.first_seq ? await get(`${path}/events`, { after: found.first_seq - 1, limit: 1, form: "compact" }) : null;
    const message = page?.events[0]?.message;
    go(message ? link("s", session.session_id, { at: String(message) }) : link("s", session.session_id));
  });
}

/** @param {import("../../store.js").Session} session @param {import("./lanes.js").TreeTurn} turn */
export async function forkFrom(session, turn) {
  await attempt(async () => {
    const made = await post(`/sessions/${session.session_id}/fork`, { after_turn: turn.turn_index });
    notify(`A new session goes on from turn ${turn.turn_index}.`);
    go(link("s", made.session_id));
  });
}

/**
 * @param {import("../../store.js").Session} session @param {import("./lanes.js").TreeTurn[]} turns
 * @param {import("./lanes.js").TreeTurn} turn @param {boolean} files
 */
export async function undoTo(session, turns, turn, files) {
  const count = turnsAfter(turns, turn);
  const also = files ? " The files of the workspace go back as well." : " Files stay as they are.";
  const text = `${count === 1 ? "One turn is" : `${count} turns are`} taken back.${also} Redo brings everything back as long as nothing new was said.`;
  if (!(await ask({ title: `Undo to turn ${turn.turn_index}?`, text, yes: "Undo" }))) return false;
  return travel(session, "undo", { turns: count, files });
}

/** @param {import("../../store.js").Session} session @param {boolean} files */
export function redo(session, files) {
  return travel(session, "redo", { files });
}

/** Afterwards the session is another, whether it worked or was refused. @param {any} session @param {string} how @param {any} body */
async function travel(session, how, body) {
  const done = await attempt(() => post(`/sessions/${session.session_id}/${how}`, { ...body, expected_head: session.head }));
  await attempt(() => refreshSession(session.session_id));
  return done;
}

/** @param {() => Promise<any>} work */
async function attempt(work) {
  try {
    await work();
    return true;
  } catch (/** @type {any} */ failure) {
    notify(failure.message, "bad");
    return false;
  }
}
