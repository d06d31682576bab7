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

/** 12,345, without waking the browser's own formatter: that takes 40 ms when a session opens. @param {number} count */
const grouped = (count) => String(count).replace(/\B(?=(?:\d{3})+$)/g, ",");

/** @param {string} name @param {string} state @param {number} ms @param {number|null} cursor @param {string} text @returns {Status} */
function words(name, state, ms, cursor, text) {
  const event = name === "session" ? `event ${grouped(cursor || 0)}` : "";
  if (state === "live" || state === "taken") return { state: "live", text: event ? `live · ${event}` : "live" };
  if (state === "connecting") return { state: "reading", text: "connecting …" };
  if (state === "hidden") return { state: "idle", text: "paused while the tab is hidden" };
  if (state === "gone") return { state: "gone", text: text || "the stream has ended" };
  const seconds = Math.max(1, Math.round(ms / 1000));
  const lost = navigator.onLine ? "connection lost" : "offline";
  return { state: navigator.onLine ? "waiting" : "offline", text: `${lost} · trying again in ${seconds} s · nothing is lost${event && `, ${event}`}` };
}
