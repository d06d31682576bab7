// @ts-check
// Times and dates in words.

/** How long ago, short. @param {number} seconds since 1970 */
export function ago(seconds) {
  const past = Math.max(0, Date.now() / 1000 - seconds);
  if (past < 60) return "now";
  if (past < 3600) return `${Math.floor(past / 60)} min`;
  if (past < 86400) return `${Math.floor(past / 3600)} h`;
  if (past < 7 * 86400) return `${Math.floor(past / 86400)} d`;
  return new Date(seconds * 1000).toLocaleDateString(undefined, { day: "numeric", month: "short" });
}

/** A formatter is made once, when it is first needed: to make one takes as long as to draw ten rows. @param {Intl.DateTimeFormatOptions} options */
function formatter(options) {
  /** @type {Intl.DateTimeFormat|null} */
  let made = null;
  return (/** @type {Date} */ at) => (Number.isNaN(at.getTime()) ? "–" : (made ??= new Intl.DateTimeFormat(undefined, options)).format(at));
}

const formatWhen = formatter({ weekday: "short", day: "numeric", month: "long", year: "numeric", hour: "numeric", minute: "2-digit" });
const formatMoment = formatter({ dateStyle: "medium", timeStyle: "short" });

/** A day in full, with its time: what ends in an hour and what ends tonight are not the same. @param {number} seconds */
export const when = (seconds) => formatWhen(new Date(seconds * 1000));

const formatTime = formatter({ timeStyle: "short" });

/** A moment, without the day where that is today. @param {number} seconds */
export function shortMoment(seconds) {
  const at = new Date(seconds * 1000);
  return at.toDateString() === new Date().toDateString() ? formatTime(at) : formatMoment(at);
}

/** A moment in full. @param {number|string} at seconds, or ISO text */
export const moment = (at) => formatMoment(new Date(typeof at === "number" ? at * 1000 : at));

/** How long something took. @param {number} ms */
export function lasted(ms) {
  if (!(ms >= 0)) return ""; // a clock was set back meanwhile
  if (ms < 1000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 60000) return `${(ms / 1000).toFixed(ms < 10000 ? 1 : 0)} s`;
  const minutes = Math.floor(ms / 60000);
  return minutes < 60 ? `${minutes} min ${Math.round((ms % 60000) / 1000)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** A large number, short: 12.4k. @param {number} count */
export function brief(count) {
  if (count < 1000) return String(count);
  if (count < 1e6) return `${(count / 1000).toFixed(count < 1e4 ? 1 : 0)}k`;
  return `${(count / 1e6).toFixed(1)}M`;
}

/** What becomes of a session that is left alone. @param {{retention: string, closes_at?: number|null, deletes_at?: number|null}} row */
export function retentionWords(row) {
  if (row.retention === "keep") return "Kept until you delete it.";
  if (row.closes_at && row.deletes_at) return `Closes on ${when(row.closes_at)} and is deleted on ${when(row.deletes_at)}, if nothing happens before.`;
  if (row.deletes_at) return `Deleted on ${when(row.deletes_at)}, if nothing happens before.`;
  if (row.closes_at) return `Closes on ${when(row.closes_at)}, if nothing happens before.`;
  return "Closed when it has been idle for long, and deleted some time later.";
}
