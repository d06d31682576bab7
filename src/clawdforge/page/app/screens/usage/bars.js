// @ts-check
// Stacked bars over days, drawn as SVG: no library, and nothing that moves.
import { html, useLayoutEffect, useRef, useState } from "../../lib.js";
import { showHidden } from "../words.js";

const HEIGHT = 180;
const LEFT = 52;
const BOTTOM = 22;
const TOP = 8;
const SERIES = 6;

/** The next round number. @param {number} most */
export function roundUp(most) {
  if (!(most > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].map((step) => step * power).find((step) => step >= most) ?? most;
}

/** @param {number} index */
export const seriesClass = (index) => `series-${Math.min(index, SERIES - 1)}`;

/** How wide an element is, as it changes: letters in a drawing must not shrink with it. @returns {[any, number]} */
function useWidth() {
  const element = useRef(/** @type {Element|null} */ (null));
  const [width, setWidth] = useState(600);
  useLayoutEffect(() => {
    const watcher = new ResizeObserver(([entry]) => setWidth(Math.max(240, Math.round(entry.contentRect.width))));
    if (element.current) watcher.observe(element.current);
    return () => watcher.disconnect();
  }, []);
  return [element, width];
}

/** What is quiet takes no room where there is nothing of it.
 * @param {{title: string, summed: ReturnType<typeof import("./sums.js").sumDays>, say: (amount: number) => string, quiet?: boolean}} props */
export function StackedBars({ title, summed, say, quiet }) {
  const { days, names } = summed;
  const [place, wide] = useWidth();
  const most = roundUp(summed.most);
  const step = (wide - LEFT) / Math.max(1, days.length);
  const width = Math.max(1, Math.min(step * 0.72, 34));
  const y = (/** @type {number} */ amount) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - amount / most);
  const every = Math.ceil(days.length / Math.max(2, Math.floor((wide - LEFT) / 64)));
  const total = days.reduce((sum, day) => sum + day.total, 0);
  if (quiet && total === 0) return html`<p class="plot row small quiet"><span class="grow">${title}</span>nothing in this time</p>`;
  return html`<figure class="plot">
    <figcaption class="row"><span class="grow">${title}</span><strong>${say(total)}</strong></figcaption>
    <svg ref=${place} height=${HEIGHT} viewBox=${`0 0 ${wide} ${HEIGHT}`} role="img" aria-label=${`${title}: ${say(total)} from ${days[0]?.day} to ${days.at(-1)?.day}. The table below has the numbers.`}>
      ${[0, 0.5, 1].map(
        (share) => html`<g class="grid">
          <line x1=${LEFT} x2=${wide} y1=${y(most * share)} y2=${y(most * share)} />
          <text x=${LEFT - 8} y=${y(most * share) + 4} text-anchor="end">${say(most * share)}</text>
        </g>`,
      )}
      ${days.map((day, index) => {
        const x = LEFT + step * index + (step - width) / 2;
        let base = 0;
        return html`<g key=${day.day}>
          <title>${day.day}: ${say(day.total)}</title>
          ${names.map((name, series) => {
            const amount = day.parts.get(name) ?? 0;
            base += amount;
            return (
              amount > 0 &&
              html`<rect class=${seriesClass(series)} x=${x} width=${width} y=${y(base)} height=${Math.max(0.5, y(base - amount) - y(base))} />`
            );
          })}
          ${index % every === 0 && html`<text class="day" x=${x + width / 2} y=${HEIGHT - 6} text-anchor="middle">${sayDay(day.day)}</text>`}
        </g>`;
      })}
    </svg>
    ${total === 0 && html`<p class="plot-empty small quiet">Nothing in this time.</p>`}
  </figure>`;
}

/** @param {string} day */
const sayDay = (day) =>
  new Date(`${day}T00:00:00Z`).toLocaleDateString("en", { day: "numeric", month: "short", timeZone: "UTC" });

/** @param {{names: string[]}} props */
export function Legend({ names }) {
  return html`<ul class="legend small">
    ${names.map((name, index) => html`<li><span class=${`swatch ${seriesClass(index)}`}></span>${showHidden(name)}</li>`)}
  </ul>`;
}
