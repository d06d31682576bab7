// @ts-check
// What can be done with a turn: stop, undo and redo with files, retry, edit, fork, copy, go on.
import { Failure, call, newKey, post } from "../api/client.js";
import { notify } from "../store.js";
import { placeSessions } from "../sessions/actions.js";
import { ask, choose } from "../shell/dialog.js";
import { go, link } from "../shell/router.js";
import { addToDraft } from "../composer/drafts.js";
import { copyText } from "./code.js";

/** @typedef {import("./room.js").Room} Room */
/** @typedef {import("./rows.js").Group} Group */

/** @param {() => Promise<any>} work */
async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const moved = error.status === 409 ? " Somebody or something else was faster; look at the session as it is now." : "";
    notify(error.message + moved, "bad");
    return null;
  }
}

/** What a step on history carries: the last event that this page has shown. Whoever has not seen the newest is refused; who is
 * quicker than the page waits until there is something to see. @param {Room} room */
async function seen(room) {
  await room.shown;
  return { expected_head: room.cursor };
}

/** The turn that is shown, by its number: one that begins at this moment goes on. @param {Room} room */
export const stop = (room) => attempt(() => post(`${room.path}/cancel`, { turn: room.running.value }));

/** How many turns an undo to before this one takes. @param {Room} room @param {Group} group */
function countBack(room, group) {
  const numbers = new Set(room.groups.map((one) => one.turn).filter((turn) => turn !== null && turn >= /** @type {number} */ (group.turn)));
  return numbers.size;
}

/** Whether it was done. @param {Room} room @param {Group} [group] */
export async function undo(room, group) {
  const turns = group ? countBack(room, group) : 1;
  const head = await seen(room);
  const how = await choose({
    title: turns === 1 ? "Undo the last turn?" : `Undo the last ${turns} turns?`,
    text: "The transcript and the agent's memory go back. Redo brings it all back, until you send something new.",
    choices: [["words", "Undo"], ["files", "Undo, and the files too"]],
  });
  return how !== null && (await attempt(() => post(`${room.path}/undo`, { turns, files: how === "files", ...head }))) !== null;
}

/** @param {Room} room */
export async function redo(room) {
  const head = await seen(room);
  const how = await choose({
    title: "Bring back what was undone?",
    text: "If the files went back as well, bring them back too.",
    choices: [["words", "Redo"], ["files", "Redo, and the files too"]],
  });
  if (how) await attempt(() => post(`${room.path}/redo`, { files: how === "files", ...head }));
}

/** @param {Room} room */
export const retry = (room) => attempt(async () => post(`${room.path}/retry`, { run: true, ...(await seen(room)) }));

/** Take the turn back and put its prompt into the composer, before what stands there. @param {Room} room @param {Group} group */
export async function edit(room, group) {
  const words = group.prompt?.raw || "";
  if (await undo(room, group)) addToDraft(room.id, words);
}

/** @param {Room} room */
export const goOn = (room) => attempt(() => call("POST", `${room.path}/turns`, { body: { prompt: "Continue where you were interrupted." }, key: newKey() }));

/** @param {Room} room @param {Group} [group] */
export async function fork(room, group) {
  const title = await ask({ title: "Fork the session", text: "A new session with the same history up to here. Both go on independently.", name: "Title", value: `${room.row?.title || "New session"} (fork)`, yes: "Fork" });
  if (title === null) return;
  const made = await attempt(() => post(`${room.path}/fork`, { title, ...(group?.turn ? { after_turn: group.turn } : {}) }));
  if (!made) return;
  placeSessions([made]);
  go(link("s", made.session_id));
}

/** @param {Group} group */
export async function copy(group) {
  notify((await copyText(group.text)) ? "The answer is copied." : "The browser does not allow copying here.");
}
