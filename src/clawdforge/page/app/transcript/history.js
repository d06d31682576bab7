// @ts-check
// Loads stored parts of a session: its end, the page above, the page below, a place, and a turn as it happened.
import { get } from "../api/client.js";
import { applyToTurn } from "./apply.js";
import { Group, makeRow } from "./rows.js";

const PAGE = 60;
const MAX_DETAILS = 3000;
const FIRST_MS = 250;
/** What a turn may have had that its stored messages do not tell. */
const UNTOLD = new Set(["image", "permission", "note"]);

/** @typedef {import("./room.js").Room} Room */

/** @param {Room} room @param {Record<string, unknown>} query */
async function messages(room, query) {
  const reply = await get(`${room.path}/messages`, { limit: PAGE, ...query });
  if (reply.previous !== undefined || query.after !== undefined) return reply;
  // A server that only reads forwards: everything, from the beginning.
  const all = [...reply.messages];
  let next = reply.next;
  while (next !== null) {
    const more = await get(`${room.path}/messages`, { after: next, limit: 1000 });
    all.push(...more.messages);
    next = more.next;
  }
  return { messages: all, previous: null, next: null };
}

/** How the turns of these messages went. @param {Room} room @param {any[]} rows @returns {Promise<Map<number, any>>} */
async function turnsOf(room, rows) {
  const numbers = rows.map(turnOf).filter((turn) => turn !== null);
  const found = new Map();
  if (!numbers.length) return found;
  const last = Math.max(...numbers);
  let after = Math.min(...numbers) - 1;
  while (after < last) {
    const reply = await get(`${room.path}/turns`, { after, limit: Math.min(1000, last - after) });
    for (const turn of reply.turns) found.set(turn.turn_index, turn);
    if (reply.next === null) break;
    after = reply.next;
  }
  return found;
}

/** The turn of a message; what was imported belongs to none. @param {any} message @returns {number|null} */
const turnOf = (message) => (message.turn > 0 ? message.turn : null);

/** @param {any[]} rows @param {Map<number, any>} turns @returns {Group[]} */
function groupsOf(rows, turns) {
  /** @type {Group[]} */
  const groups = [];
  for (const message of rows) {
    let group = groups[groups.length - 1];
    const turn = turnOf(message);
    if (!group || turn === null || group.turn !== turn) {
      group = new Group(turn === null ? `m${message.seq}` : `t${turn}`, turn, message.seq);
      group.info = turn === null ? null : turns.get(turn) || null;
      groups.push(group);
    }
    if (message.role === "user" && !group.prompt) group.prompt = makeRow(group, "prompt", { raw: message.content, files: group.info?.files || [], ts: message.ts });
    else if (message.is_summary) group.add("summary", { raw: message.content });
    else if (message.role === "system" || message.role === "tool") group.note(message.content);
    else group.takeMessage(message);
  }
  for (const group of groups) if (group.info?.state === "ended") group.finish(group.info);
  return groups;
}

/** @param {Room} room @param {Record<string, unknown>} query */
async function page(room, query) {
  const reply = await messages(room, query);
  const turns = await turnsOf(room, reply.messages);
  return { groups: groupsOf(reply.messages, turns), previous: reply.previous ?? null, next: reply.next };
}

/** The end of the session, and where the stream goes on. @param {Room} room */
export async function loadTail(room) {
  const row = await room.look();
  const [found] = await Promise.all([page(room, { tail: 1 }), loadQueue(room, row)]);
  room.groups = found.groups;
  room.previous = found.previous;
  room.next = null;
  await startAt(room, row);
  const wanted = room.groups.slice(-2).map((group) => upgrade(room, group, false));
  await Promise.race([Promise.all(wanted), new Promise((resolve) => setTimeout(resolve, FIRST_MS))]);
  room.flatten();
}

/** @param {Room} room @param {number} seq */
export async function loadAround(room, seq) {
  const row = await room.look();
  const [found] = await Promise.all([page(room, { around: seq }), loadQueue(room, row)]);
  room.groups = found.groups;
  room.previous = found.previous;
  room.next = found.next;
  await startAt(room, row);
  const wanted = room.groupAt(seq);
  if (wanted) await upgrade(room, wanted, false); // later it would take away the row that is shown
  room.flatten();
}

/** A running turn is told from its beginning, everything else from now. @param {Room} room @param {any} row */
async function startAt(room, row) {
  room.cursor = room.head = row.head;
  if (row.running_turn === null) return;
  const reply = await get(`${room.path}/turns`, { after: row.running_turn - 1, limit: 1 });
  const first = reply.turns[0]?.first_seq;
  if (first) room.cursor = Math.min(row.head, first - 1);
}

/** Those that wait, in the order in which they will run. Mostly they are the last; one that others have overtaken is further back.
 * @param {Room} room @param {any} row */
async function loadQueue(room, row) {
  /** @type {any[]} */
  let queue = [];
  for (const back of row.queued_turns ? [1, 100, 900] : []) {
    const after = Math.max(0, row.turn_count - row.queued_turns - back);
    const reply = await get(`${room.path}/turns`, { after, limit: 1000 });
    queue = reply.turns.filter((/** @type {any} */ turn) => turn.state === "queued");
    if (queue.length >= row.queued_turns || after === 0) break;
  }
  room.queue.value = queue.sort((a, b) => a.position - b.position);
}

/** @param {Room} room */
export async function loadOlder(room) {
  if (room.previous === null) return;
  const found = await page(room, { before: room.previous });
  room.previous = found.previous;
  join(found.groups[found.groups.length - 1], room.groups[0], room.groups);
  room.groups = [...found.groups, ...room.groups];
  room.flatten();
}

/** @param {Room} room */
export async function loadNewer(room) {
  if (room.next === null) return;
  const row = await room.look(); // before the page: what happens after it is told by the stream
  const found = await page(room, { after: room.next });
  room.next = found.next;
  join(room.groups[room.groups.length - 1], found.groups[0], found.groups);
  room.groups = [...room.groups, ...found.groups];
  room.flatten();
  if (room.next === null) {
    await startAt(room, row);
    room.follow();
  }
}

/** A turn that a page has cut in two is one again. @param {Group|undefined} above @param {Group|undefined} below @param {Group[]} groups */
function join(above, below, groups) {
  if (!above || !below || above.turn === null || above.turn !== below.turn) return;
  above.prompt ??= below.prompt;
  for (const row of below.rows) row.group = above;
  above.body.push(...below.body);
  for (const [id, row] of below.tools) above.tools.set(id, row);
  above.end = below.end;
  above.from = below.from;
  groups.shift();
}

/** Tell a turn as it happened, with its tools and pictures between its words. Most turns are words alone: those are looked at one
 * after the other, and not at all when somebody has scrolled past them meanwhile. @param {Room} room @param {Group} group @param {boolean} [show] */
export async function upgrade(room, group, show = true) {
  const { first_seq: first, last_seq: last, state } = group.info || {};
  if (group.from !== "messages" || state !== "ended" || !first || !last || last - first > MAX_DETAILS) return;
  group.from = "loading";
  if (group.tools.size || !show) return retell(room, group, show);
  const look = async () => {
    if (group.from !== "loading") return;
    if (group.rows.some((row) => row.element)) await retell(room, group, show);
    else group.from = "messages";
  };
  room.looking = room.looking.then(look).catch(reportError);
}

/** @param {Room} room @param {Group} group @param {boolean} show */
async function retell(room, group, show) {
  const { first_seq: first, last_seq: last } = group.info;
  const fresh = new Group(group.key, group.turn, group.seq);
  let after = first - 1;
  while (after < last) {
    const reply = await get(`${room.path}/events`, { after, limit: 1000, form: "compact" }).catch(() => null);
    if (!reply?.events.length) return void (group.from = "kept");
    for (const event of reply.events) if (event.turn === group.turn && event.seq <= last && event.type !== "turn.ended") applyToTurn(fresh, event);
    after = reply.events[reply.events.length - 1].seq;
  }
  fresh.pause();
  if (group.from !== "loading" || !fresh.body.length) return;
  if (!group.tools.size && !fresh.body.some((row) => UNTOLD.has(row.kind))) return void (group.from = "kept");
  group.body = fresh.body;
  group.tools = fresh.tools;
  for (const row of group.body) row.group = group;
  group.from = "events";
  if (show) room.flatten();
}
