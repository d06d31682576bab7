// @ts-check
// Numbers, times and names as a person reads them, and text in which nothing can hide.

const UNITS = ["B", "KB", "MB", "GB", "TB"];

/** @param {number|null|undefined} count */
export function sayCount(count) {
  if (count == null) return "–";
  if (count < 10_000) return count.toLocaleString("en", { maximumFractionDigits: 1 });
  if (count < 1_000_000) return `${short(count / 1000)}k`;
  return `${short(count / 1_000_000)}M`;
}

/** @param {number} count */
const short = (count) => count.toLocaleString("en", { maximumFractionDigits: count < 100 ? 1 : 0 });

/** @param {number|null|undefined} dollars */
export function sayMoney(dollars) {
  if (dollars == null) return "–";
  return `$${dollars.toFixed(dollars !== 0 && Math.abs(dollars) < 0.1 ? 4 : 2)}`;
}

/** @param {number|null|undefined} bytes */
export function sayBytes(bytes) {
  if (bytes == null) return "–";
  let left = bytes;
  let unit = 0;
  while (left >= 1000 && unit < UNITS.length - 1) {
    left /= 1000;
    unit += 1;
  }
  return `${unit && left < 10 ? left.toFixed(1) : Math.round(left)} ${UNITS[unit]}`;
}

/** How long a time is. @param {number} secs */
export function sayLength(secs) {
  const whole = Math.max(0, Math.round(secs));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.round(whole / 60)} min`;
  if (whole < 86_400) return `${Math.round(whole / 3600)} h`;
  return `${Math.round(whole / 86_400)} days`;
}

/** How long ago a moment was. @param {number} at seconds since the epoch @param {number} now milliseconds */
export function sayAgo(at, now = Date.now()) {
  const secs = now / 1000 - at;
  return secs < 5 ? "just now" : `${sayLength(secs)} ago`;
}

/** Minutes and seconds that are left. @param {number} at seconds since the epoch @param {number} now milliseconds */
export function sayLeft(at, now = Date.now()) {
  const secs = Math.max(0, Math.round(at - now / 1000));
  if (secs >= 3600) return sayLength(secs);
  return `${Math.floor(secs / 60)}:${String(secs % 60).padStart(2, "0")}`;
}

/** @param {number|null|undefined} at seconds since the epoch */
export function sayTime(at) {
  if (at == null) return "–";
  return new Date(at * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

/** @param {number} ms */
export function sayDuration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

// Characters that turn the direction of what follows, have no width, or steer a terminal.
// eslint-disable-next-line no-control-regex
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

/**
 * Text as it is, with everything that one could not see written out. Whoever allows a command has read all of it.
 * @param {unknown} text
 */
export function showHidden(text) {
  return String(text)
    .replace(HIDDEN, (sign) => `⟨U+${sign.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`)
    .toWellFormed();
}

const OUTCOMES = {
  completed: "done",
  cancelled: "stopped",
  failed: "failed",
  timed_out: "out of time",
  interrupted: "interrupted",
};

/** What became of a turn, in a word. @param {{state: string, outcome?: string|null}} turn */
export function sayOutcome(turn) {
  if (turn.state !== "ended") return turn.state;
  return /** @type {Record<string, string>} */ (OUTCOMES)[turn.outcome || ""] || turn.outcome || "ended";
}

/** The colour of a chip for it. @param {{state: string, outcome?: string|null}} turn */
export function toneOf(turn) {
  if (turn.state === "waiting") return "warn";
  if (turn.state !== "ended") return "accent";
  if (turn.outcome === "completed") return "good";
  return turn.outcome === "cancelled" ? "" : "bad";
}
