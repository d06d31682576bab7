// @ts-check
// The bars of a turn: one line for each thing that took time, under one ruler.
import { html } from "../../lib.js";
import { sayDuration, showHidden } from "../words.js";

const SHOWN = 200;

/** @param {{read: ReturnType<typeof import("./spans.js").readSpans>}} props */
export function Bars({ read }) {
  const whole = Math.max(1, read.to - read.from);
  const share = (/** @type {number} */ ms) => `${((ms / whole) * 100).toFixed(3)}%`;
  return html`<div class="bars-scale tiny quiet" aria-hidden="true"><span>0</span><span>${sayDuration(whole / 2)}</span><span>${sayDuration(whole)}</span></div>
    <ol class="bars">
      ${read.spans.slice(0, SHOWN).map(
        (span) => html`<li class="bar-row">
          <span class="bar-name small"><span class="cut">${showHidden(span.label)}</span><span class="quiet">${sayDuration(span.to - span.from)}${span.open ? " …" : ""}</span></span>
          <svg class="bar-track" height="8" aria-hidden="true">
            <rect class=${`bar of-${span.kind} ${span.state}`} x=${share(span.from - read.from)} width=${share(Math.max(span.to - span.from, whole / 250))} height="8" rx="3" />
          </svg>
        </li>`,
      )}
    </ol>
    ${read.spans.length > SHOWN && html`<p class="quiet small">${read.spans.length - SHOWN} more are not drawn.</p>`}`;
}

/** What the turn's time went into. @param {{read: ReturnType<typeof import("./spans.js").readSpans>}} props */
export function Sums({ read }) {
  const names = {
    queued: "in the queue",
    starting: "starting",
    thinking: "thinking",
    text: "writing",
    tool: "tools",
    permission: "waiting for a person",
  };
  const sums = Object.keys(names).map((kind) => [
    kind,
    read.spans.filter((span) => span.kind === kind).reduce((sum, span) => sum + span.to - span.from, 0),
  ]);
  return html`<ul class="legend small">
    ${sums
      .filter(([, ms]) => Number(ms) > 0)
      .map(
        ([kind, ms]) =>
          html`<li><span class=${`swatch of-${kind}`}></span>${/** @type {any} */ (names)[kind]} ${sayDuration(Number(ms))}</li>`,
      )}
  </ul>`;
}
