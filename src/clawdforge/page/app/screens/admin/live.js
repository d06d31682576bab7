// @ts-check
// Live measures: a look every two seconds, a few minutes of past, a small plot for each.
import { address } from "../../api/client.js";
import { html, useEffect, useState } from "../../lib.js";
import { MEASURES, readMeasures } from "./measures.js";
import { Section } from "./parts.js";

const EVERY_MS = 2000;
const KEPT = 120;
const FEWEST = 30;

export function Live() {
  const [past, setPast] = useState(/** @type {Record<string, number>[]} */ ([]));
  const [trouble, setTrouble] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    watch(stop.signal, (point) => setPast((old) => [...old.slice(1 - KEPT), point]), setTrouble);
    return () => stop.abort();
  }, []);
  return html`<${Section} title="Live measures">
    ${trouble && html`<p class="trouble-box" role="alert">${trouble}</p>`}
    <div class="plots">
      ${MEASURES.map((measure) => html`<${Plot} key=${measure.key} measure=${measure} values=${past.map((point) => point[measure.key])} />`)}
    </div>
    <p class="hint">A look every two seconds as long as this stands open. Kept for good they belong into Prometheus: GET /metrics.</p>
  <//>`;
}

/** @param {AbortSignal} stop @param {(point: Record<string, number>) => void} add @param {(text: string) => void} setTrouble */
async function watch(stop, add, setTrouble) {
  /** @type {import("./measures.js").Sample[]|null} */
  let before = null;
  let at = 0;
  while (!stop.aborted) {
    try {
      const reply = await fetch(address("/metrics"), { signal: stop, cache: "no-store", credentials: "same-origin" });
      if (!reply.ok) throw new Error(`The server answered with ${reply.status}.`);
      const now = readMeasures(await reply.text());
      const secs = at ? (performance.now() - at) / 1000 : 0;
      at = performance.now();
      add(Object.fromEntries(MEASURES.map((measure) => [measure.key, measure.read(now, before, secs)])));
      before = now;
      setTrouble("");
    } catch (error) {
      if (!stop.aborted) setTrouble(`The measures could not be read. ${/** @type {Error} */ (error).message}`);
    }
    await new Promise((done) => setTimeout(done, EVERY_MS));
  }
}

const WIDTH = 240;
const HEIGHT = 56;

/** @param {{measure: import("./measures.js").Measure, values: number[]}} props */
function Plot({ measure, values }) {
  const most = Math.max(1, ...values) * 1.1;
  const x = (/** @type {number} */ index) =>
    WIDTH - (values.length - 1 - index) * (WIDTH / (Math.max(values.length, FEWEST) - 1));
  const y = (/** @type {number} */ value) => HEIGHT - 2 - (value / most) * (HEIGHT - 4);
  const line = values.map((value, index) => `${x(index).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  const last = values.at(-1);
  const said =
    last === undefined ? "–" : `${last >= 100 || Number.isInteger(last) ? Math.round(last) : last.toFixed(1)}${measure.unit}`;
  return html`<figure class="card measure">
    <figcaption class="small quiet">${measure.title}</figcaption>
    <strong>${said}</strong>
    <svg viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      ${values.length > 1 && html`<polygon points=${`${x(0).toFixed(1)},${HEIGHT} ${line} ${WIDTH},${HEIGHT}`} /><polyline points=${line} />`}
    </svg>
  </figure>`;
}
