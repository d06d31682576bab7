// @ts-check
// Writes rows as CSV that a spreadsheet opens without running anything in it.

const COLUMNS = ["day", "app", "agent", "model", "turns"];
const AMOUNTS = ["input_tokens", "output_tokens", "cached_tokens", "total_tokens", "cost_usd"];

/** @param {any[]} rows */
export function writeCsv(rows) {
  const columns = COLUMNS.filter((name) => rows.some((row) => row[name] != null));
  const head = [...columns, ...AMOUNTS.map((name) => `reported_${name}`), ...AMOUNTS.map((name) => `estimated_${name}`)];
  const lines = rows.map((row) => [
    ...columns.map((name) => row[name]),
    ...AMOUNTS.map((name) => row.reported?.[name]),
    ...AMOUNTS.map((name) => row.estimated?.[name]),
  ]);
  return [head, ...lines].map((line) => line.map(cell).join(",")).join("\r\n") + "\r\n";
}

/** @param {unknown} value */
function cell(value) {
  if (value == null) return "";
  if (typeof value === "number") return String(value);
  let text = String(value);
  if (/^[=+\-@\t\r]/.test(text)) text = `'${text}`; // a formula of somebody who chose a model's name
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
