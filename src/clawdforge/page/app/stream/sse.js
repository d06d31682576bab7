// @ts-check
// Takes a stream of server-sent events apart, however it was cut, and looks at every character once.

const END = "\n\n";

/** Collects text and gives the `data` of each frame that is whole. */
export class Frames {
  constructor() {
    /** @type {string[]} */
    this.parts = [];
    this.last = "";
  }

  /** @param {string} text @param {(data: string) => void} give */
  push(text, give) {
    if (!text) return;
    // The end of a frame may be cut in two: one line end came last time, the other comes now.
    if (this.last === "\n" && text[0] === "\n") {
      this.take(give);
      text = text.slice(1);
    }
    let from = 0;
    for (let at = text.indexOf(END, from); at >= 0; at = text.indexOf(END, from)) {
      this.parts.push(text.slice(from, at));
      this.take(give);
      from = at + END.length;
    }
    if (from < text.length) this.parts.push(from ? text.slice(from) : text);
    this.last = text[text.length - 1] || this.last;
    if (from === text.length) this.last = "";
  }

  /** @param {(data: string) => void} give */
  take(give) {
    const frame = this.parts.length === 1 ? this.parts[0] : this.parts.join("");
    this.parts = [];
    this.last = "";
    let data = "";
    for (const line of frame.split("\n")) {
      if (line.startsWith("data:")) data += (data && "\n") + line.slice(line[5] === " " ? 6 : 5);
    }
    if (data) give(data);
  }
}
