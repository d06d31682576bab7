// @ts-check
// The usual ways in which something repeats, as a person chooses them, and the cron that says the same.

/**
 * What stands in the fields of a form. All are kept while others are shown, so that nothing typed is lost.
 * @typedef {{kind: string, time: string, minute: string, day: string, date: string, cron: string, at: string, zone: string}} Pattern
 */

export const KINDS = [
  ["hour", "Every hour"],
  ["day", "Every day"],
  ["work", "Every working day"],
  ["week", "Every week"],
  ["month", "Every month"],
  ["cron", "By a cron expression"],
  ["once", "Once"],
];

export const DAYS = [
  ["MON", "Monday"],
  ["TUE", "Tuesday"],
  ["WED", "Wednesday"],
  ["THU", "Thursday"],
  ["FRI", "Friday"],
  ["SAT", "Saturday"],
  ["SUN", "Sunday"],
];
const NUMBERED = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"];
const DATE = /^([1-9]|[12]\d|3[01])$/;
const MINUTE = /^([0-9]|[1-5]\d)$/;
const HOUR = /^([0-9]|1\d|2[0-3])$/;

/** What goes to the server. @param {Pattern} one @returns {{cron?: string, at?: string, timezone: string}} */
export function writePattern(one) {
  const timezone = one.zone.trim();
  if (one.kind === "once") return { at: one.at, timezone };
  const [hour, minute] = one.time.split(":").map(Number);
  const at = one.time ? `${minute} ${hour}` : ""; // without a time the server says what is missing
  /** @type {Record<string, string>} */
  const crons = {
    hour: `${one.minute} * * * *`,
    day: `${at} * * *`,
    work: `${at} * * MON-FRI`,
    week: `${at} * * ${one.day}`,
    month: `${at} ${one.date} * *`,
    cron: one.cron.trim(),
  };
  return { cron: crons[one.kind], timezone };
}

/** The fields that a cron would be made of; what is not one of the usual ways stays a cron. @param {string} cron @returns {Partial<Pattern>} */
export function readCron(cron) {
  const [minute, hour, date, month, day] = cron.toUpperCase().split(" ");
  const other = { kind: "cron", cron };
  if (!MINUTE.test(minute) || month !== "*") return other;
  if (hour === "*") return date === "*" && day === "*" ? { kind: "hour", minute: String(Number(minute)), cron } : other;
  if (!HOUR.test(hour)) return other;
  const time = `${hour.padStart(2, "0")}:${minute.padStart(2, "0")}`;
  if (date === "*" && day === "*") return { kind: "day", time, cron };
  if (date === "*" && (day === "MON-FRI" || day === "1-5")) return { kind: "work", time, cron };
  const named = NUMBERED[Number(day)] ?? day;
  if (date === "*" && DAYS.some(([name]) => name === named)) return { kind: "week", time, day: named, cron };
  if (day === "*" && DATE.test(date)) return { kind: "month", time, date, cron };
  return other;
}
