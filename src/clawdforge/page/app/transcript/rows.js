// @ts-check
// Rows of a turn, grown from events or made from stored messages. A row changes in place; `rev` tells who shows it.
import { signal } from "../lib.js";
import { Blocks, splitBlocks } from "./blocks.js";

/**
 * @typedef {{key: string, kind: string, turn: number|null, rev: import("../../vendor/signals.js").Signal<number>, group: Group,
 *   i: number, v: number, [field: string]: any}} Row
 */

let lastKey = 0;

/** @param {Group} group @param {string} kind @param {Record<string, any>} fields @returns {Row} */
export function makeRow(group, kind, fields) {
  return { key: `r${++lastKey}`, kind, turn: group.turn, rev: signal(0), group, i: -1, v: -1, ...fields };
}

/** @param {Row} row @param {Record<string, any>} fields */
export function changeRow(row, fields) {
  Object.assign(row, fields);
  row.rev.value += 1;
}

/** What belongs together: a turn, or one message without a turn. */
export class Group {
  /** @param {string} key @param {number|null} turn @param {number} seq the message that it begins with */
  constructor(key, turn, seq) {
    this.key = key;
    this.turn = turn;
    this.seq = seq;
    this.from = "messages";
    /** @type {any} the turn as the server tells it */
    this.info = null;
    /** @type {Row|null} */
    this.prompt = null;
    /** @type {Row[]} */
    this.body = [];
    /** @type {Row|null} */
    this.end = null;
    this.blocks = this.newBlocks();
    this.reset();
  }

  newBlocks() {
    return new Blocks((raw, lead) => this.closeBlock(raw, lead));
  }

  reset() {
    this.body = [];
    /** @type {Row|null} */
    this.open = null;
    /** @type {Map<string, Row>} */
    this.tools = new Map();
    this.blocks = this.newBlocks();
  }

  /** @returns {Row[]} */
  get rows() {
    return [this.prompt, ...this.body, this.end].filter((row) => row !== null);
  }

  /** All words of the answer, exactly as they came. */
  get text() {
    return this.body.filter((row) => row.kind === "text").map((row) => row.raw).join("");
  }

  /** @param {string} kind @param {Record<string, any>} fields */
  add(kind, fields) {
    const row = makeRow(this, kind, fields);
    this.body.push(row);
    return row;
  }

  /** @param {string} raw @param {string} lead */
  closeBlock(raw, lead) {
    if (this.open) changeRow(this.open, { raw, lead, closed: true });
    else this.add("text", { raw, lead, closed: true });
    this.open = null;
  }

  /** @param {string} words */
  say(words) {
    if (!words) return;
    this.blocks.push(words);
    const raw = this.blocks.open;
    if (!raw) return;
    const fields = { raw, lead: this.blocks.lead, inFence: this.blocks.inFence, closed: false };
    if (this.open) changeRow(this.open, fields);
    else this.open = this.add("text", fields);
  }

  /** Something else follows the words: the open block is closed. */
  pause() {
    this.blocks.end();
    this.open = null;
  }

  /** @param {string} words */
  think(words) {
    this.pause();
    const last = this.body[this.body.length - 1];
    if (last?.kind === "thinking") changeRow(last, { raw: last.raw + words });
    else if (words) this.add("thinking", { raw: words });
  }

  /** @param {string} id @param {Record<string, any>} given what is known of the call now */
  tool(id, given) {
    const known = this.tools.get(id);
    const fields = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined && value !== null));
    if (known) return changeRow(known, { call: { ...known.call, ...fields } });
    this.pause();
    this.tools.set(id, this.add("tool", { call: { id, status: "pending", title: "", ...fields } }));
  }

  /** @param {any[]} entries */
  plan(entries) {
    const known = this.body.find((row) => row.kind === "plan");
    if (known) return changeRow(known, { entries });
    this.pause();
    if (entries.length) this.add("plan", { entries });
  }

  /** @param {string} text @param {string} [tone] */
  note(text, tone = "") {
    this.pause();
    this.add("note", { text, tone });
  }

  /** The turn has ended, or is known to have. @param {any} info */
  finish(info) {
    this.pause();
    this.info = { ...this.info, ...info };
    for (const row of this.tools.values()) {
      const busy = row.call.status === "pending" || row.call.status === "in_progress";
      if (busy) changeRow(row, { call: { ...row.call, status: "ended" } });
    }
    if (this.end) changeRow(this.end, {});
    else this.end = makeRow(this, "end", {});
  }

  /** A stored answer. Its words and its tool calls are kept apart there; the events tell their order. @param {any} message */
  takeMessage(message) {
    if (message.thinking) this.add("thinking", { raw: message.thinking });
    if (message.plan?.length) this.plan(message.plan);
    for (const call of message.tool_calls || []) {
      this.tool(String(call.toolCallId), { title: call.title, kind: call.kind, status: call.status, input: call.rawInput, output: call.rawOutput, locations: call.locations });
    }
    for (const block of splitBlocks(message.content || "")) this.add("text", { ...block, closed: true });
    if (message.truncated) this.note("The answer is longer than what the transcript keeps. The export with events has all of it.");
  }
}
