// @ts-check
// Cuts a growing markdown text into blocks. A closed block never changes again; only the last one is open.

const MAX_BLOCK = 4096;
const MAX_LINE = 4096;
const FENCE = /^ {0,3}(`{3,}|~{3,})(.*)$/;
const ITEM = /^ {0,3}(?:[-*+]|\d{1,9}[.)])(?: |$)/;

/** Feed it pieces; it calls `close` with each block that is whole. */
export class Blocks {
  /** @param {(raw: string, lead: string) => void} close `lead` goes before `raw` when it is rendered, and is no part of the text */
  constructor(close) {
    this.close = close;
    /** Lines of the open block that are whole. */
    this.done = "";
    /** The line that still grows. */
    this.line = "";
    this.fence = "";
    this.info = "";
    this.lead = "";
    this.blank = false;
    this.isList = false;
  }

  /** The text of the block that is still open. */
  get open() {
    return this.done + this.line;
  }

  /** Whether the open block is inside a fence: then it is code, and grows at its end only. */
  get inFence() {
    return this.fence !== "";
  }

  /** @param {string} text */
  push(text) {
    let from = 0;
    for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", from)) {
      this.line += text.slice(from, at + 1);
      if (this.line.length >= MAX_LINE) this.cutLine();
      if (this.line) this.endLine(this.line);
      this.line = "";
      from = at + 1;
    }
    this.line += from ? text.slice(from) : text;
    if (this.line.length >= MAX_LINE) this.cutLine();
  }

  /** The text has ended: whatever is open is closed. */
  end() {
    if (this.line) this.endLine(this.line);
    this.line = "";
    this.flush();
    this.fence = "";
  }

  /** @param {string} line with its end */
  endLine(line) {
    const isBlank = line.trim() === "";
    if (this.fence) {
      this.done += line;
      const found = FENCE.exec(line.trimEnd());
      if (found && found[1].startsWith(this.fence) && !found[2].trim()) {
        this.fence = "";
        this.flush();
      } else if (this.done.length >= MAX_BLOCK) {
        this.cutFence();
      }
      return;
    }
    if (isBlank) {
      this.blank = true;
      this.done += line;
      if (this.done.length >= MAX_BLOCK) this.flush();
      return;
    }
    if (this.blank && this.done.trim() && !this.continues(line)) this.flush();
    const found = FENCE.exec(line.trimEnd());
    if (found && !(found[1][0] === "`" && found[2].includes("`"))) {
      if (!this.isList) this.flush();
      this.fence = found[1];
      this.info = line;
      this.done += line;
      this.blank = false;
      return;
    }
    if (!this.done.trim()) this.isList = ITEM.test(line);
    this.blank = false;
    this.done += line;
    if (this.done.length >= MAX_BLOCK) this.flush();
  }

  /** After an empty line: an indented line, or the next item of a list, belongs to what came before. @param {string} line */
  continues(line) {
    if (!this.isList) return false;
    return /^(?: {2,}|\t)/.test(line) || ITEM.test(line);
  }

  flush() {
    const { done, lead } = this;
    this.done = this.lead = "";
    this.blank = this.isList = false;
    if (done) this.close(done, lead);
  }

  /** A fence that is too long for one block: the rest goes on in a fence of its own. */
  cutFence() {
    const { done, lead } = this;
    this.done = "";
    this.lead = this.info;
    this.close(done, lead);
  }

  /** A line that never ends is shown in pieces. */
  cutLine() {
    if (this.done) this.flush();
    while (this.line.length >= MAX_LINE) {
      let cut = MAX_LINE;
      if (/[\uD800-\uDBFF]/.test(this.line[cut - 1])) cut -= 1;
      this.close(this.line.slice(0, cut), this.fence ? this.info : "");
      this.line = this.line.slice(cut);
    }
  }
}

/** All blocks of a text that is whole. @param {string} text @returns {{raw: string, lead: string}[]} */
export function splitBlocks(text) {
  /** @type {{raw: string, lead: string}[]} */
  const found = [];
  const blocks = new Blocks((raw, lead) => found.push({ raw, lead }));
  blocks.push(text);
  blocks.end();
  return found;
}
