// @ts-check
// Reads a unified diff into lines with their numbers. A broken patch becomes lines of text, never an error.

/**
 * @typedef {{kind: 'hunk'|'add'|'del'|'same'|'note', old: number|null, new: number|null, text: string}} Line
 */

const HUNK = /^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@/;
/** @type {Record<string, string>} */
const KINDS = { "+": "add", "-": "del", " ": "same" };

/**
 * @param {string} patch
 * @param {number} most lines to read; the rest is counted in `left`
 * @returns {{lines: Line[], left: number}}
 */
export function readPatch(patch, most = 2000) {
  const all = patch.split("\n");
  if (all.at(-1) === "") all.pop();
  /** @type {Line[]} */
  const lines = [];
  let oldLine = 0;
  let newLine = 0;
  let oldLeft = 0;
  let newLeft = 0;
  let read = 0;
  for (const text of all) {
    if (lines.length >= most) break;
    read += 1;
    const hunk = oldLeft + newLeft <= 0 ? HUNK.exec(text) : null;
    if (hunk) {
      oldLine = Number(hunk[1]);
      newLine = Number(hunk[3]);
      oldLeft = Number(hunk[2] ?? 1);
      newLeft = Number(hunk[4] ?? 1);
      lines.push({ kind: "hunk", old: null, new: null, text });
      continue;
    }
    const kind = oldLeft + newLeft > 0 ? KINDS[text[0] ?? " "] : undefined;
    if (!kind) {
      // What stands before the first hunk says again what the list says: names, modes, hashes.
      if (lines.length > 0) lines.push({ kind: "note", old: null, new: null, text });
      continue;
    }
    const line = { kind, old: kind === "add" ? null : oldLine, new: kind === "del" ? null : newLine, text: text.slice(1) };
    lines.push(/** @type {Line} */ (line));
    if (kind !== "add") {
      oldLine += 1;
      oldLeft -= 1;
    }
    if (kind !== "del") {
      newLine += 1;
      newLeft -= 1;
    }
  }
  return { lines, left: all.length - read };
}
