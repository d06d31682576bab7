// @ts-check
// Reads what follows a cursor: by a stream, or by pages where a connection must not stay open. Hands over one batch at a time,
// goes on where it was, and stops reading when the page is slow.
import { Pending } from "./fold.js";
import { withSlot } from "./slots.js";
import { Frames } from "./sse.js";

const FULL_CHARS = 512 * 1024;
const FULL_EVENTS = 2000;
const SILENT_MS = 45000;
const FIRST_MS = 300;
const LONGEST_MS = 10000;
const OFTEN_MS = 1000;
const OFTEN_TRIES = 60;
const PAGES_MS = 1500;
const HIDDEN_MS = 20_000;
const ENDS = new Set([401, 403, 404, 410]);

/** @typedef {{status: number, text: string, rest?: number}} End what became of one try; `rest` is for pages */

/** Where an event stands: a session's have `seq`, an app's have `cursor`. @param {any} event @returns {number} */
const placeOf = (event) => event.seq ?? event.cursor;

/** An app's cursor may be told anew, and then begins elsewhere. @param {any} event */
const isBeginning = (event) => event.type === "reset" || event.type === "cursor";

export class Reader {
  /** @param {string} url @param {(message: any) => void} tell */
  constructor(url, tell) {
    this.url = url;
    this.tell = tell;
    this.pending = new Pending();
    this.cursor = /** @type {number|null} */ (null);
    this.round = 0;
    this.isSlow = false;
    this.isTaken = true;
    this.tries = 0;
    this.control = new AbortController();
    this.wake = () => {};
    this.makeRoom = () => {};
  }

  /** @param {number|null} after what the page has already @param {boolean} slow whether to look now and then only */
  open(after, slow) {
    this.close();
    if (after !== null) this.cursor = Math.max(this.cursor ?? 0, after);
    this.isSlow = slow;
    this.run(++this.round);
  }

  close() {
    this.round += 1;
    this.control.abort();
    this.makeRoom();
    this.wake();
  }

  /** Try now what waits for its time. */
  again() {
    this.wake();
  }

  /** The page has the last batch. */
  take() {
    this.isTaken = true;
    this.handOver();
  }

  handOver() {
    if (!this.isTaken || !this.pending.size) return;
    this.isTaken = false;
    const events = this.pending.take();
    this.tell({ type: "batch", events, cursor: placeOf(events[events.length - 1]) });
    if (!this.isFull) this.makeRoom();
  }

  get isFull() {
    return this.pending.size >= FULL_EVENTS || this.pending.chars >= FULL_CHARS;
  }

  /** @param {any} event */
  add(event) {
    const place = placeOf(event);
    if (typeof place !== "number" || (this.cursor !== null && place <= this.cursor && !isBeginning(event))) return;
    this.cursor = place;
    this.pending.add(event);
  }

  /** @param {number} round */
  async run(round) {
    const isOver = () => this.round !== round;
    if (this.isSlow) await this.sleep(HIDDEN_MS);
    while (!isOver()) {
      const control = (this.control = new AbortController());
      const read = (/** @type {boolean} */ stays) => (isOver() ? GONE : stays ? this.readStream(control) : this.readPage(control));
      const end = await (this.isSlow ? this.readPage(control) : withSlot(async (stays) => read(stays))).catch(() => GONE);
      if (isOver()) return;
      if (ENDS.has(end.status)) return this.tell({ type: "state", state: "gone", status: end.status, text: end.text });
      if (end.rest !== undefined) await this.sleep(end.rest);
      else await this.pause();
    }
  }

  /** After a failure: soon at first, then less and less often. */
  async pause() {
    const longest = this.tries < OFTEN_TRIES ? OFTEN_MS : LONGEST_MS;
    const ms = Math.round(Math.min(longest, FIRST_MS * 2 ** Math.min(this.tries, 10)) * (0.8 + 0.4 * Math.random()));
    this.tries += 1;
    this.tell({ type: "state", state: "waiting", ms });
    await this.sleep(ms);
  }

  /** @param {number} ms */
  async sleep(ms) {
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.wake = () => (clearTimeout(timer), resolve(null));
    });
  }

  /** @param {AbortController} control @param {string} accept */
  async ask(control, accept) {
    const url = new URL(this.url);
    if (this.cursor !== null) url.searchParams.set("after", String(this.cursor));
    const reply = await fetch(url, { headers: { Accept: accept }, credentials: "same-origin", cache: "no-store", signal: control.signal });
    if (reply.ok && reply.body) return { reply, failed: null };
    const body = await reply.json().catch(() => ({}));
    return { reply, failed: { status: reply.status, text: String(body.error || "") } };
  }

  live() {
    this.tries = 0;
    this.tell({ type: "state", state: "live" });
  }

  /** @param {AbortController} control @returns {Promise<End>} */
  async readStream(control) {
    const { reply, failed } = await this.ask(control, "text/event-stream");
    if (failed) return failed;
    this.live();
    const frames = new Frames();
    const decoder = new TextDecoder();
    const reader = /** @type {ReadableStream<Uint8Array>} */ (reply.body).getReader();
    for (;;) {
      const silent = setTimeout(() => control.abort(), SILENT_MS);
      const { done, value } = await reader.read().finally(() => clearTimeout(silent));
      if (done) return GONE;
      frames.push(decoder.decode(value, { stream: true }), (data) => this.onFrame(data));
      await this.giveAway();
      if (control.signal.aborted) return GONE;
    }
  }

  /** @param {string} data */
  onFrame(data) {
    let event;
    try {
      event = JSON.parse(data);
    } catch {
      return; // what is no JSON is no event of ours
    }
    this.add(event);
  }

  /** @param {AbortController} control @returns {Promise<End>} */
  async readPage(control) {
    const { reply, failed } = await this.ask(control, "application/json");
    if (failed) return failed;
    const page = await reply.json();
    const before = this.cursor;
    for (const event of page.events) this.add(event);
    this.live();
    await this.giveAway();
    const rest = this.isSlow ? HIDDEN_MS : PAGES_MS;
    return { status: 200, text: "", rest: this.cursor !== before && before !== null ? 0 : rest };
  }

  /** Hand over, and wait while the page is behind. */
  async giveAway() {
    this.handOver();
    if (!this.isFull) return;
    await new Promise((resolve) => (this.makeRoom = () => resolve(null)));
  }
}

/** @type {End} */
const GONE = { status: 0, text: "" };
