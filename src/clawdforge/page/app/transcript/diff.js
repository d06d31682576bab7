// @ts-check
// The lines that differ between two texts, with a little around them; and a unified diff taken apart.

const AROUND = 3;
const MAX_LINES = 4000;

/** @typedef {{kind: " "|"+"|"-"|"…", text: string, old?: number, new?: number}} Line */

/** @param {string} text */
const lines = (text) => (text === "" ? [] : text.replace(/\n$/, "").split("\n"));

/** Longest run of equal lines by a small table; long texts are compared at their ends only. @param {string[]} a @param {string[]} b */
function middle(a, b) {
  /** @type {Line[]} */
  const out = [];
  if (a.length * b.length > 1_000_000) {
    for (const text of a) out.push({ kind: "-", text });
    for (const text of b) out.push({ kind: "+", text });
    return out;
  }
  const width = b.length + 1;
  const table = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      table[i * width + j] = a[i] === b[j] ? table[(i + 1) * width + j + 1] + 1 : Math.max(table[(i + 1) * width + j], table[i * width + j + 1]);
    }
  }
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) out.push({ kind: " ", text: a[i++] }), j++;
    else if (i < a.length && (j >= b.length || table[(i + 1) * width + j] >= table[i * width + j + 1])) out.push({ kind: "-", text: a[i++] });
    else out.push({ kind: "+", text: b[j++] });
  }
  return out;
}

/** @param {string} before @param {string} after @returns {{lines: Line[], added: number, removed: number}} */
export function compare(before, after) {
  const a = lines(before);
  const b = lines(after);
  let top = 0;
  while (top < a.length && top < b.length && a[top] === b[top]) top++;
  let tail = 0;
  while (tail < a.length - top && tail < b.length - top && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  /** @type {Line[]} */
  const all = [
    ...a.slice(0, top).map((text) => /** @type {Line} */ ({ kind: " ", text })),
    ...middle(a.slice(top, a.length - tail), b.slice(top, b.length - tail)),
    ...a.slice(a.length - tail).map((text) => /** @type {Line} */ ({ kind: " ", text })),
  ];
  let old = 1;
  let now = 1;
  for (const line of all) {
    if (line.kind !== "+") line.old = old++;
    if (line.kind !== "-") line.new = now++;
  }
  const added = all.filter((line) => line.kind === "+").length;
  return { lines: near(all).slice(0, MAX_LINES), added, removed: all.filter((line) => line.kind === "-").length };
}

/** Only what is near a change. @param {Line[]} all */
function near(all) {
  const wanted = new Uint8Array(all.length);
  all.forEach((line, at) => {
    if (line.kind !== " ") wanted.fill(1, Math.max(0, at - AROUND), at + AROUND + 1);
  });
  /** @type {Line[]} */
  const out = [];
  all.forEach((line, at) => {
    if (wanted[at]) out.push(line);
    else if (at === 0 || wanted[at - 1]) out.push({ kind: "…", text: "" });
  });
  return out;
}

/** A unified diff, also a broken one, as lines. @param {string} text @returns {Line[]} */
export function readPatch(text) {
  let old = 0;
  let now = 0;
  /** @type {Line[]} */
  const out = [];
  for (const line of text.split("\n").slice(0, MAX_LINES)) {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(line);
    if (hunk) {
      [old, now] = [Number(hunk[1]), Number(hunk[2])];
      out.push({ kind: "…", text: line });
    } else if (!old && !now) {
      continue;
    } else if (line[0] === "+") out.push({ kind: "+", text: line.slice(1), new: now++ });
    else if (line[0] === "-") out.push({ kind: "-", text: line.slice(1), old: old++ });
    else if (line[0] === " ") out.push({ kind: " ", text: line.slice(1), old: old++, new: now++ });
  }
  return out;
}
