// @ts-check
// How the streams stand, in words: the session on the screen has the say, then the list.
import { status } from "../store.js";

/** @typedef {import("../store.js").Status} Status */

/** @type {Map<string, Status>} */
const states = new Map();

/**
 * @param {"session"|"list"} name @param {string} state @param {number} [ms] until the next try
 * @param {number|null} [cursor] @param {string} [text]
 */
export function sayState(name, state, ms = 0, cursor = 0, text = "") {
  if (state === "taken" && states.get(name)?.state !== "live") return;
  states.set(name, words(name, state, ms, cursor, text));
  show();
}

/** @param {string} name */
export function forgetState(name) {
  states.delete(name);
  show();
}

function show() {
  status.value = states.get("session") || states.get("list") || { state: "idle", text: "" };
}

/** @param {string} name @param {string} state @param {number} ms @param {number|null} cursor @param {string} text @returns {Status} */
function words(name, state, ms, cursor, text) {
  const at = name === "session" ? `, event ${(cursor || 0).toLocaleString()}` : "";
  if (state === "live" || state === "taken") return { state: "live", text: name === "session" ? `live · event ${(cursor || 0).toLocaleString()}` : "live" };
  if (state === "connecting") return { state: "reading", text: "connecting …" };
  if (state === "hidden") return { state: "idle", text: "paused while the tab is hidden" };
  if (state === "gone") return { state: "gone", text: text || "the stream has ended" };
  const seconds = Math.max(1, Math.round(ms / 1000));
  const lost = navigator.onLine ? "connection lost" : "offline";
  return { state: navigator.onLine ? "waiting" : "offline", text: `${lost} · trying again in ${seconds} s · nothing is lost${at}` };
}
