// @ts-check
// What a search has found, in its place: which row of a message has the words, and the words marked where they stand.

const NAME = "found";
const MOST_WORDS = 12;
const MOST_CHARS = 64;

/** The words as one pattern, or null where there are none. @param {string} words */
export function patternOf(words) {
  const all = words.split(/\s+/).filter((word) => word && word.length <= MOST_CHARS);
  const escaped = all.slice(0, MOST_WORDS).map((word) => word.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  return escaped.length ? new RegExp(escaped.join("|"), "giu") : null;
}

/** Of a group's rows the one that has most of the words; else the one that it begins with.
 * @param {import("./rows.js").Group} group @param {number} at the message @param {RegExp|null} pattern */
export function rowOf(group, at, pattern) {
  const rows = group.rows;
  if (!pattern || (at === group.seq && group.prompt)) return rows[0];
  const count = (/** @type {import("./rows.js").Row} */ row) => new Set(String(row.raw ?? row.text ?? "").toLowerCase().match(pattern)).size;
  let best = { row: rows[0], words: 0 };
  for (const row of group.body) {
    const words = row.kind === "thinking" ? 0 : count(row);
    if (words > best.words) best = { row, words };
  }
  return best.row;
}

/** Mark the words in these elements, and nowhere else. Nodes stay as they are: the browser paints over them.
 * @param {Iterable<HTMLElement>} elements @param {RegExp|null} pattern @returns {Range[]} */
export function mark(elements, pattern) {
  /** @type {Range[]} */
  const ranges = [];
  if (pattern) for (const element of elements) ranges.push(...rangesIn(element, pattern));
  if (!globalThis.CSS?.highlights) return ranges; // an older browser shows the place, without the marks
  if (ranges.length) CSS.highlights.set(NAME, new Highlight(...ranges));
  else CSS.highlights.delete(NAME);
  return ranges;
}

/** @param {HTMLElement} element @param {RegExp} pattern */
function* rangesIn(element, pattern) {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    for (const found of String(node.nodeValue).matchAll(pattern)) {
      const range = document.createRange();
      range.setStart(node, found.index);
      range.setEnd(node, found.index + found[0].length);
      yield range;
    }
  }
}
