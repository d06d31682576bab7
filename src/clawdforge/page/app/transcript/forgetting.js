// @ts-check
// Forgets the oldest rows of a very long transcript: all of it is stored, and nobody looks at all of it at once.

import { makeRow } from "./rows.js";

/** @typedef {import("./room.js").Room} Room */

const MAX_ROWS = 4000;
const KEEP_ROWS = 2500;

/** @param {Room} room */
export function forgetOldest(room) {
  if (room.rows.length <= MAX_ROWS) return;
  let count = room.rows.length;
  while (count > KEEP_ROWS && room.groups.length > 1) {
    count -= room.groups[0].rows.length;
    room.groups.shift();
    room.previous = room.groups[0].seq;
  }
  const last = room.groups[0];
  if (count > KEEP_ROWS) {
    last.body.splice(0, count - KEEP_ROWS);
    last.body.unshift(makeRow(last, "note", { text: "The beginning of this answer is no longer shown here. It is stored, and an export has it.", tone: "" }));
  }
}
