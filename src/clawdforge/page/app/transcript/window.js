// @ts-check
// Which rows are in the document: at most 200, around a row that stays where it is, or at the end while it is followed.
import { Failure } from "../api/client.js";
import { signal } from "../lib.js";
import { prepare } from "./prepare.js";
import { each, painted } from "./slices.js";

const MOST = 180;
const STEP = 40;
const FIRST = 16;
const TAIL = 100;
const NEAR_PX = 1500;
const AGAIN_MS = 1000;

export class RowWindow {
  /** @param {import("./room.js").Room} room */
  constructor(room) {
    this.room = room;
    this.start = 0;
    this.end = 0;
    this.following = signal(true);
    this.rev = signal(0);
    /** @type {HTMLElement|null} */
    this.scroller = null;
    /** @type {{row: import("./rows.js").Row, top: number}|null} */
    this.anchor = null;
    /** How far down the list was scrolled when the anchor was noted; null while the anchor is where the row has to go. */
    this.noted = /** @type {number|null} */ (null);
    this.busy = false;
    this.again = false;
    this.closed = false;
    this.jumping = false;
    room.ready = async () => {
      await painted();
      while (this.busy && !this.closed) await painted(); // the page is behind: take no more yet
    };
    room.sent = () => void this.toEnd();
    room.mayForget = () => this.following.value;
  }

  /** @returns {import("./rows.js").Row[]} */
  get mounted() {
    return this.room.rows.slice(this.start, this.end);
  }

  /** The rows have changed: keep those that are still there. */
  reindex() {
    const alive = this.lastMounted.filter((row) => row.v === this.room.version);
    if (alive.length) {
      this.start = alive[0].i;
      this.end = alive[alive.length - 1].i + 1;
    } else {
      this.start = this.end = this.following.value ? this.room.rows.length : 0;
    }
  }

  /** @type {import("./rows.js").Row[]} */
  lastMounted = [];

  /** Show what should be shown, a slice at a time. */
  async work() {
    if (this.busy) return void (this.again = true);
    this.busy = true;
    do {
      this.again = false;
      this.reindex();
      if (this.following.value) await this.workAtEnd();
      else await this.workAround();
    } while (this.again && !this.closed);
    this.busy = false;
  }

  async workAtEnd() {
    const version = this.room.version;
    const go = () => !this.closed && this.room.version === version && this.following.value;
    const total = this.room.rows.length;
    if (this.end === 0 || this.end < total - TAIL) {
      const first = Math.max(0, total - FIRST);
      if (!(await each(this.room.rows.slice(first), prepare, go))) return void (this.again = !this.closed);
      this.start = first;
      this.end = total;
      this.commit();
    } else if (this.end < total) {
      if (!(await each(this.room.rows.slice(this.end), prepare, go))) return void (this.again = !this.closed);
      this.end = total;
      this.start = Math.max(this.start, total - TAIL);
      this.commit();
    } else {
      this.commit();
    }
    while (go() && this.start > Math.max(0, total - TAIL) && this.height() < 2.5 * this.view()) {
      const from = Math.max(0, this.start - FIRST);
      if (!(await each(this.room.rows.slice(from, this.start), prepare, go))) return void (this.again = !this.closed);
      this.start = from;
      this.commit();
    }
    if (this.start === 0 && this.room.previous !== null && this.height() < 2 * this.view()) await this.older();
  }

  async workAround() {
    const version = this.room.version;
    const go = () => !this.closed && this.room.version === version;
    const total = this.room.rows.length;
    const above = this.scroller?.scrollTop || 0;
    const below = this.height() - above - this.view();
    if (this.start === this.end) {
      this.end = Math.min(total, this.start + FIRST);
      await each(this.mounted, prepare, go);
      this.commit();
    }
    if (above < NEAR_PX && this.start > 0) {
      const from = Math.max(0, this.start - STEP);
      if (!(await each(this.room.rows.slice(from, this.start), prepare, go))) return void (this.again = true);
      this.start = from;
      this.end = Math.min(this.end, from + MOST);
      this.commit();
    } else if (below < NEAR_PX && this.end < total) {
      const to = Math.min(total, this.end + STEP);
      if (!(await each(this.room.rows.slice(this.end, to), prepare, go))) return void (this.again = true);
      this.end = to;
      this.start = Math.max(this.start, to - MOST);
      this.commit();
    } else {
      this.commit();
    }
    if (above < NEAR_PX && this.start === 0 && this.room.previous !== null) await this.older();
    else if (below < NEAR_PX && this.end === total && this.room.next !== null) await this.newer();
  }

  older = () => this.more(this.room.older());
  newer = () => this.more(this.room.newer());

  /** The page above or below; what could not be read is tried again a little later. @param {Promise<void>} page */
  async more(page) {
    try {
      await page;
      this.again = true;
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      setTimeout(() => this.closed || this.work(), AGAIN_MS);
    }
  }

  commit() {
    if (this.closed) return;
    this.lastMounted = this.mounted;
    this.rev.value += 1;
  }

  view() {
    return this.scroller?.clientHeight || 800;
  }

  height() {
    return this.scroller?.scrollHeight || 0;
  }

  /** Note which row is at the top, and where. */
  note() {
    const scroller = this.scroller;
    if (!scroller || this.following.value) return void (this.anchor = null);
    const top = scroller.getBoundingClientRect().top;
    for (const row of this.lastMounted) {
      const box = row.element?.getBoundingClientRect();
      if (!box || box.bottom <= top) continue;
      this.anchor = { row, top: box.top - top };
      return void (this.noted = scroller.scrollTop);
    }
  }

  /** After any change of height: the end stays in sight, or the noted row where it was. */
  settle() {
    const scroller = this.scroller;
    if (!scroller) return;
    if (this.following.value) {
      scroller.scrollTop = scroller.scrollHeight;
      return;
    }
    const element = this.anchor?.row.element;
    if (!this.anchor || !element?.isConnected) return this.note();
    // A person may have scrolled since, and the browser has not said so yet: that is not taken back. Where the list became so
    // short that it had to move, nobody did.
    const by = this.noted === null ? 0 : scroller.scrollTop - this.noted;
    const isPushed = by < 0 && scroller.scrollTop >= this.height() - this.view() - 1;
    if (!isPushed) this.anchor.top -= by;
    const moved = element.getBoundingClientRect().top - scroller.getBoundingClientRect().top - this.anchor.top;
    if (Math.abs(moved) > 0.1) scroller.scrollTop += moved;
    if (this.noted !== null) this.noted = scroller.scrollTop;
  }

  /** Follow the end again. */
  async toEnd() {
    this.following.value = true;
    this.anchor = null;
    if (this.room.next !== null) await this.room.reload();
    this.work();
  }

  /** Show a row and hold it. @param {import("./rows.js").Row} row */
  async show(row) {
    this.following.value = false;
    this.start = Math.max(0, row.i - FIRST);
    this.end = Math.min(this.room.rows.length, this.start + 3 * FIRST);
    await each(this.mounted, prepare, () => !this.closed);
    this.anchor = { row, top: 24 };
    this.noted = null;
    this.revealed = false;
    this.commit();
  }

  revealed = true;

  /** Once: where words of a row that was just shown are below the screen, the row goes up until they are on it.
   * @param {import("./rows.js").Row} row @param {DOMRect} words */
  reveal(row, words) {
    if (this.revealed || this.anchor?.row !== row || !this.scroller || !row.element) return;
    this.revealed = true;
    const below = words.top - row.element.getBoundingClientRect().top;
    if (below > this.view() / 2) this.anchor.top = this.view() / 3 - below;
    this.settle();
  }
}
