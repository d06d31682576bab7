// @ts-check
// Reads the text format of Prometheus, and keeps a short past of the numbers that are drawn.

const LINE = /^([A-Za-z_:][A-Za-z0-9_:]*)(?:\{(.*)\})?\s+([-+0-9.eE]+|NaN|[+-]?Inf)$/;
const LABEL = /([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"/g;

/** @typedef {{name: string, labels: Record<string, string>, value: number}} Sample */

/** @param {string} text @returns {Sample[]} */
export function readMeasures(text) {
  const found = [];
  for (const line of text.split("\n")) {
    const match = LINE.exec(line);
    if (!match) continue;
    /** @type {Record<string, string>} */
    const labels = {};
    for (const [, name, value] of (match[2] ?? "").matchAll(LABEL)) labels[name] = value.replace(/\\(.)/g, "$1");
    found.push({ name: match[1], labels, value: Number(match[3].replace("Inf", "Infinity")) });
  }
  return found;
}

/** @param {Sample[]} samples @param {string} name @param {Record<string, string>} [labels] the sum of all that fit */
export function valueOf(samples, name, labels = {}) {
  const wanted = Object.entries(labels);
  let sum = 0;
  for (const sample of samples) {
    if (sample.name === name && wanted.every(([key, value]) => sample.labels[key] === value)) sum += sample.value;
  }
  return sum;
}

/**
 * What is drawn. A counter is drawn as what it grew by in a second, a histogram as the mean since the last look.
 * @typedef {{key: string, title: string, unit: string, read: (now: Sample[], before: Sample[]|null, secs: number) => number}} Measure
 * @type {Measure[]}
 */
export const MEASURES = [
  { key: "running", title: "Turns running", unit: "", read: (now) => valueOf(now, "clawdforge_turns", { state: "running" }) },
  { key: "queued", title: "Turns queued", unit: "", read: (now) => valueOf(now, "clawdforge_turns", { state: "queued" }) },
  {
    key: "waiting",
    title: "Waiting for a person",
    unit: "",
    read: (now) => valueOf(now, "clawdforge_turns", { state: "waiting" }),
  },
  { key: "agents", title: "Live agents", unit: "", read: (now) => valueOf(now, "clawdforge_agents_live") },
  { key: "readers", title: "Open streams", unit: "", read: (now) => valueOf(now, "clawdforge_readers") },
  { key: "events", title: "Events a second", unit: "", read: rate("clawdforge_events_appended_total") },
  { key: "commit", title: "Commit, mean", unit: " ms", read: mean("clawdforge_commit_seconds") },
  { key: "delay", title: "Delay of the loop, mean", unit: " ms", read: mean("clawdforge_loop_delay_seconds") },
];

/** @param {string} name @returns {Measure['read']} */
function rate(name) {
  return (now, before, secs) => (before && secs > 0 ? Math.max(0, valueOf(now, name) - valueOf(before, name)) / secs : 0);
}

/** @param {string} name @returns {Measure['read']} */
function mean(name) {
  return (now, before) => {
    const count = valueOf(now, `${name}_count`) - (before ? valueOf(before, `${name}_count`) : 0);
    const sum = valueOf(now, `${name}_sum`) - (before ? valueOf(before, `${name}_sum`) : 0);
    return count > 0 ? Math.max(0, (sum / count) * 1000) : 0;
  };
}
