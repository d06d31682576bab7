// @ts-check
// Adds up rows of usage by day and by one other name. What agents reported and what was estimated stay apart.

/**
 * @typedef {{input_tokens: number, output_tokens: number, cached_tokens: number, total_tokens: number, cost_usd: number|null}} Amount
 * @typedef {{day?: string, agent?: string, model?: string|null, app?: string, turns: number, reported: Amount, estimated: Amount}} Row
 * @typedef {'reported'|'estimated'} Source
 * @typedef {{day: string, parts: Map<string, number>, total: number}} Day
 */

export const MEASURES = /** @type {const} */ ({
  total_tokens: "All tokens",
  input_tokens: "Input tokens",
  output_tokens: "Output tokens",
  cost_usd: "Cost in dollars",
  turns: "Turns",
});

/** @param {Row} row @param {Source} source @param {string} measure */
export function amountOf(row, source, measure) {
  if (measure === "turns") return row.turns;
  return row[source]?.[/** @type {keyof Amount} */ (measure)] ?? 0;
}

/** @param {Row} row @param {string} by */
export function nameOf(row, by) {
  return /** @type {any} */ (row)[by] ?? "not said";
}

/**
 * Every day from the first to the last, those without use included: a gap is a fact too.
 * @param {Row[]} rows @param {string} by @param {Source} source @param {string} measure
 * @param {string} from @param {string} to
 * @returns {{days: Day[], names: string[], most: number}}
 */
export function sumDays(rows, by, source, measure, from, to) {
  /** @type {Map<string, Day>} */
  const days = new Map(daysBetween(from, to).map((day) => [day, { day, parts: new Map(), total: 0 }]));
  /** @type {Map<string, number>} */
  const totals = new Map();
  for (const row of rows) {
    const day = days.get(row.day ?? "");
    if (!day) continue;
    const name = nameOf(row, by);
    const amount = amountOf(row, source, measure);
    day.parts.set(name, (day.parts.get(name) ?? 0) + amount);
    day.total += amount;
    totals.set(name, (totals.get(name) ?? 0) + amount);
  }
  const names = [...totals.keys()].sort((a, b) => (totals.get(b) ?? 0) - (totals.get(a) ?? 0) || a.localeCompare(b));
  return { days: [...days.values()], names, most: Math.max(0, ...[...days.values()].map((day) => day.total)) };
}

/**
 * One line for each name: what the table shows.
 * @param {Row[]} rows @param {string} by
 */
export function sumNames(rows, by) {
  /** @type {Map<string, {name: string, turns: number, reported: Amount, estimated: Amount}>} */
  const found = new Map();
  for (const row of rows) {
    const name = nameOf(row, by);
    const line = found.get(name) ?? { name, turns: 0, reported: nothing(), estimated: nothing() };
    line.turns += row.turns;
    add(line.reported, row.reported);
    add(line.estimated, row.estimated);
    found.set(name, line);
  }
  return [...found.values()].sort((a, b) => b.reported.total_tokens - a.reported.total_tokens || a.name.localeCompare(b.name));
}

/** @returns {Amount} */
function nothing() {
  return { input_tokens: 0, output_tokens: 0, cached_tokens: 0, total_tokens: 0, cost_usd: null };
}

/** @param {Amount} sum @param {Amount} more */
function add(sum, more) {
  for (const name of /** @type {const} */ (["input_tokens", "output_tokens", "cached_tokens", "total_tokens"])) {
    sum[name] += more?.[name] ?? 0;
  }
  if (more?.cost_usd != null) sum.cost_usd = (sum.cost_usd ?? 0) + more.cost_usd;
}

const DAY_MS = 86_400_000;
const MOST_DAYS = 400;

/** @param {string} from @param {string} to both as YYYY-MM-DD, both counted */
export function daysBetween(from, to) {
  const found = [];
  const end = Date.parse(`${to}T00:00:00Z`);
  for (let at = Date.parse(`${from}T00:00:00Z`); at <= end && found.length < MOST_DAYS; at += DAY_MS) found.push(dayOf(at));
  return found;
}

/** @param {number} ms */
export function dayOf(ms) {
  return new Date(ms).toISOString().slice(0, 10);
}

/** @param {number} back how many days before today, in UTC as the server counts */
export function dayAgo(back) {
  return dayOf(Date.now() - back * DAY_MS);
}
