// @ts-check
// One session on the screen: its groups of rows, its queue, and what arrives by the stream.
import { signal } from "../lib.js";
import { Failure, get, isUnreachable } from "../api/client.js";
import { keepSessions, sessions } from "../store.js";
import { follow } from "../stream/link.js";
import { refreshSession } from "../sessions/actions.js";
import { applyToTurn } from "./apply.js";
import { forgetOldest } from "./forgetting.js";
import { loadAround, loadNewer, loadOlder, loadTail, upgrade } from "./history.js";
import { Group, makeRow } from "./rows.js";

const AGAIN_MS = 1000;
const RELOADING = new Set(["history.restored", "history.cleared", "history.compacted", "turn.changed"]);
/** What holds until it is told anew, and stands in no transcript. */
const LASTING = new Set(["commands", "usage"]);

export class Room {
  /** @param {string} id */
  constructor(id) {
    this.id = id;
    this.path = `/sessions/${encodeURIComponent(id)}`;
    /** @type {Group[]} */
    this.groups = [];
    /** @type {import("./rows.js").Row[]} */
    this.rows = [];
    this.version = 0;
    /** Rises with each change of which rows there are. */
    this.shape = signal(0);
    this.state = signal(/** @type {"loading"|"ready"|"failed"} */ ("loading"));
    this.problem = signal("");
    /** Nobody here has such a session: there is nothing to wait for, nor to write to. */
    this.missing = signal(false);
    /** Where the page above and the page below begin; null at the ends. */
    this.previous = /** @type {number|null} */ (null);
    this.next = /** @type {number|null} */ (null);
    this.queue = signal(/** @type {any[]} */ ([]));
    this.running = signal(/** @type {number|null} */ (null));
    this.context = signal(/** @type {{used: number, size: number}|null} */ (null));
    this.commands = signal(/** @type {any[]} */ ([]));
    /** How many turns the last undo took, where it was seen; whether a redo can bring them back is said by the session. */
    this.undone = signal(0);
    this.show = () => {};
    /** Resolves when the session is on the screen for the first time; before, nobody has seen anything of it. */
    this.shown = /** @type {Promise<void>} */ (new Promise((resolve) => (this.show = resolve)));
    /** @type {(() => void)|null} */
    this.stop = null;
    this.closed = false;
    /** The end of what is being read of the transcript: one reading after another. */
    this.opening = Promise.resolve();
    /** The newest event when the transcript was read. */
    this.head = 0;
    /** The end of looking whether turns of words alone were more than that. */
    this.looking = Promise.resolve();
    /** @type {any} */
    this.timer = 0;
    /** The view may ask for a pause before the next batch. */
    this.ready = () => Promise.resolve();
    /** Whoever sends something wants to see what becomes of it. */
    this.sent = () => {};
  }

  /** @param {number|null} at the message to show, or null for the end */
  open(at) {
    this.leave();
    this.opening = this.opening.then(() => this.load(at));
    return this.opening;
  }

  /** Take nothing more of what is followed, not even the rest of a batch: it comes again after the reading. */
  leave() {
    this.stop?.();
    this.stop = null;
  }

  /** @param {number|null} at */
  async load(at) {
    if (this.closed) return;
    clearTimeout(this.timer);
    this.leave(); // the reading before this one has begun to follow
    try {
      if (at === null) await loadTail(this);
      else await loadAround(this, at);
      if (this.closed) return;
      this.problem.value = "";
      this.state.value = "ready";
      this.show();
      if (this.next === null) this.follow();
    } catch (error) {
      if (this.closed) return;
      this.problem.value = /** @type {Error} */ (error).message;
      this.missing.value = error instanceof Failure && error.status === 404;
      this.state.value = "failed";
      if (isUnreachable(error)) this.timer = setTimeout(() => this.open(at), AGAIN_MS);
      else this.show(); // nothing more comes by itself: who waits is told by the server
    }
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    this.leave();
  }

  /** Read what happens from the beginning of the running turn, or from now. */
  follow() {
    this.leave();
    const stop = follow(this.id, this.cursor, async (events) => {
      for (const event of events) {
        if (this.stop === stop) this.tryTake(event);
      }
      this.flatten();
      await this.ready();
    });
    this.stop = stop;
  }

  cursor = 0;

  /** @param {number} turn */
  groupOf(turn) {
    let group = this.groups.findLast((one) => one.turn === turn);
    if (!group) {
      group = new Group(`t${turn}`, turn, Number.MAX_SAFE_INTEGER);
      group.from = "events";
      this.groups.push(group);
    }
    return group;
  }

  /** The group that has a message. @param {number} seq */
  groupAt(seq) {
    return this.groups.find((group) => group.seq === seq) || this.groups.findLast((group) => group.seq <= seq) || null;
  }

  /** One event that nobody expected must not stop those after it. @param {any} event */
  tryTake(event) {
    try {
      this.take(event);
    } catch (error) {
      reportError(error);
    }
  }

  /** @param {any} event */
  take(event) {
    this.cursor = event.seq;
    if (this.isRead(event)) return;
    if (event.type === "commands") this.commands.value = Array.isArray(event.update?.availableCommands) ? event.update.availableCommands : [];
    else if (event.type === "usage") this.context.value = event.update?.size ? { used: event.update.used, size: event.update.size } : this.context.value;
    else if (event.type === "turn.queued") this.queue.value = [...this.queue.value.filter((turn) => turn.turn_index !== event.turn), { turn_index: event.turn, prompt: event.prompt, files: event.files || [], state: "queued" }];
    else if (event.type === "turn.started") this.begin(event);
    else if (event.type === "history.cut") this.cut(event);
    else if (event.type === "message.posted") this.post(event);
    else if (RELOADING.has(event.type)) this.reload();
    else if (event.type.startsWith("session.")) this.refresh();
    else if (event.turn !== null) this.inTurn(event);
  }

  /** Whether the transcript that was read has it: only the running turn is told from its beginning. @param {any} event */
  isRead(event) {
    return event.seq <= this.head && !LASTING.has(event.type) && (event.turn !== this.running.value || RELOADING.has(event.type));
  }

  /** @param {any} event */
  inTurn(event) {
    if (event.type === "turn.ended") {
      this.queue.value = this.queue.value.filter((turn) => turn.turn_index !== event.turn);
      if (this.running.value === event.turn) this.running.value = null;
      this.refresh();
      if (!this.groups.some((group) => group.turn === event.turn)) return; // it never started
    }
    if (event.type === "permission.requested" || event.type === "permission.decided") this.refresh();
    applyToTurn(this.groupOf(event.turn), event);
  }

  /** @param {any} event */
  begin(event) {
    const queued = this.queue.value.find((turn) => turn.turn_index === event.turn);
    this.queue.value = this.queue.value.filter((turn) => turn !== queued);
    this.running.value = event.turn;
    this.undone.value = 0;
    const group = this.groupOf(event.turn);
    group.reset();
    group.from = "events";
    group.end = null;
    group.seq = Math.min(group.seq, event.message);
    group.info = { ...group.info, turn_index: event.turn, state: "running", started_at: Date.parse(event.ts) / 1000, first_seq: event.seq, ...queued && { prompt: queued.prompt } };
    if (!group.prompt && queued) group.prompt = makeRow(group, "prompt", { raw: queued.prompt, files: queued.files, ts: event.ts });
    this.refresh();
  }

  /** @param {any} event */
  cut(event) {
    const gone = new Set(event.turns || []);
    this.groups = this.groups.filter((group) => group.turn === null || !gone.has(group.turn));
    this.undone.value = gone.size;
    this.refresh();
  }

  /** @param {any} event */
  post(event) {
    if (this.groups.some((group) => group.seq === event.message)) return;
    const group = new Group(`m${event.message}`, null, event.message);
    if (event.role === "user") group.prompt = makeRow(group, "prompt", { raw: event.content, files: [], ts: event.ts });
    else group.takeMessage(event);
    this.groups.push(group);
  }

  /** Read the transcript again: something took away or brought back what is not known here. */
  reload() {
    this.undone.value = 0;
    return this.open(null);
  }

  refresh = () => void refreshSession(this.id).catch(() => null);

  /** Put all rows into one list, and forget the oldest of very many. */
  flatten() {
    if (this.mayForget()) forgetOldest(this);
    this.version += 1;
    this.rows = this.groups.flatMap((group) => group.rows);
    this.rows.forEach((row, at) => {
      row.i = at;
      row.v = this.version;
    });
    this.shape.value = this.version;
  }

  /** Whether rows at the top may go: the view says so while it follows the end. */
  mayForget = () => false;

  older = () => loadOlder(this);
  newer = () => loadNewer(this);
  /** @param {Group} group */
  upgrade = (group) => upgrade(this, group);

  get row() {
    return sessions.value.get(this.id) || null;
  }

  /** The newest row and the turns that wait. */
  async look() {
    const row = await get(this.path);
    keepSessions([row]);
    this.running.value = row.running_turn;
    return row;
  }
}
