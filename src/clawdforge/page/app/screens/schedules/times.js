// @ts-check
// Moments in the zone of a schedule, and in that of whoever reads.
import { html } from "../../lib.js";

/** The zone of whoever reads. */
export const MY_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

/** @type {Intl.DateTimeFormatOptions} */
const DAY = { weekday: "short", day: "numeric", month: "short", year: "numeric" };
/** @type {Intl.DateTimeFormatOptions} */
const TIME = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };

/** For each zone, since to make them takes long; null for a zone that this browser does not know. @type {Map<string, Intl.DateTimeFormat[]|null>} */
const made = new Map();

/** @param {string} timeZone */
function formattersOf(timeZone) {
  const known = made.get(timeZone);
  if (known !== undefined) return known;
  let found = null;
  try {
    found = [DAY, TIME].map((options) => new Intl.DateTimeFormat(undefined, { ...options, timeZone }));
  } catch {
    // the server knows zones that this browser does not: then only the reader's own time is shown
  }
  made.set(timeZone, found);
  return found;
}

/** The day and the time; null where the browser does not know the zone. @param {number} at seconds since the epoch @param {string} zone */
const sayIn = (at, zone) => formattersOf(zone)?.map((one) => one.format(new Date(at * 1000))) ?? null;

/** A moment in both zones; once, where clocks show the same, and the day once, where it is the same. @param {{at: number, zone: string}} props */
export function Moment({ at, zone }) {
  const here = sayIn(at, MY_ZONE) ?? [];
  const there = sayIn(at, zone) ?? here;
  const mine = here[0] === there[0] ? here[1] : here.join(", ");
  const iso = new Date(at * 1000).toISOString();
  return html`<time datetime=${iso}>${there.join(", ")}</time>${here.join() !== there.join() && html` <span class="quiet">${zone}, ${mine} for you</span>`}`;
}

/** As an input of dates and times has it: 2026-12-01T09:00. @param {number} at seconds since the epoch @param {string} zone */
export function toField(at, zone) {
  const parts = (/** @type {string} */ timeZone) =>
    new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "short", timeZone }).format(new Date(at * 1000)).replace(" ", "T");
  try {
    return parts(zone);
  } catch {
    return parts("UTC");
  }
}

/** The zones that this browser knows, for whoever looks for a name. */
export function knownZones() {
  return ["UTC", ...Intl.supportedValuesOf("timeZone").filter((name) => name !== "UTC")];
}
