// @ts-check
// Joins neighbouring pieces of text into one, and counts how much waits to be handed over.

/** @typedef {{seq: number, turn: number|null, type: string, content?: string, [key: string]: any}} Event */

const PLAIN = new Set(["text", "thinking"]);
export const BATCH_EVENTS = 400;
export const BATCH_CHARS = 48 * 1024;

/** @param {Event} event */
const isPlain = (event) => PLAIN.has(event.type) && !event.update && !event.message && typeof event.content === "string";

/** What has been read and not yet handed over. */
export class Pending {
  constructor() {
    /** @type {{event: Event, parts: string[]|null, chars: number}[]} */
    this.entries = [];
    this.chars = 0;
  }

  get size() {
    return this.entries.length;
  }

  /** @param {Event} event */
  add(event) {
    const chars = isPlain(event) ? /** @type {string} */ (event.content).length : 256;
    this.chars += chars;
    const last = this.entries[this.entries.length - 1];
    if (last?.parts && isPlain(event) && last.event.type === event.type && last.event.turn === event.turn && last.chars < BATCH_CHARS) {
      last.parts.push(/** @type {string} */ (event.content));
      last.chars += chars;
      last.event.seq = event.seq;
      last.event.ts = event.ts;
      return;
    }
    const parts = isPlain(event) ? [/** @type {string} */ (event.content)] : null;
    this.entries.push({ event, parts, chars });
  }

  /** The next batch: as much as a page takes in without stopping for long. @returns {Event[]} */
  take() {
    let count = 0;
    let chars = 0;
    while (count < this.entries.length && count < BATCH_EVENTS && (count === 0 || chars + this.entries[count].chars <= BATCH_CHARS)) {
      chars += this.entries[count++].chars;
    }
    const taken = this.entries.splice(0, count);
    this.chars -= chars;
    return taken.map(({ event, parts }) => (parts ? { ...event, content: parts.join("") } : event));
  }
}
