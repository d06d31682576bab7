// @ts-check
// The panel at the right: one turn in numbers, and what its time went into.
import { html, useEffect } from "../../lib.js";
import { Trouble, useLoad } from "../loading.js";
import { sayCount, sayDuration, sayMoney, sayOutcome, showHidden, toneOf } from "../words.js";
import { loadTurn, readContext } from "./actions.js";
import { Bars, Sums } from "./bars.js";
import { TurnChooser, useTurn } from "./chooser.js";
import { readSpans } from "./spans.js";

const EVERY_MS = 3000;

/** @param {{session: import("../../store.js").Session}} props */
export default function TurnPanel({ session }) {
  const [turn, setTurn] = useTurn(session);
  const { value, error, again } = useLoad(
    (signal) => (turn ? loadTurn(session.session_id, turn, signal) : Promise.resolve(null)),
    [session.session_id, turn, session.running_turn === turn],
  );
  const runs = value !== null && value.turn.state !== "ended";
  useEffect(() => {
    if (!runs) return undefined;
    const timer = setInterval(() => document.hidden || again(), EVERY_MS);
    return () => clearInterval(timer);
  }, [runs, turn]);
  if (!turn) return html`<div class="side-page"><p class="quiet">Nothing has been said yet.</p></div>`;
  return html`<div class="side-page stack">
    <${TurnChooser} session=${session} turn=${turn} setTurn=${setTurn} />
    ${error && html`<${Trouble} error=${error} again=${again} />`} ${value && html`<${Facts} turn=${value.turn} events=${value.events} />`}
    ${value && html`<${Times} events=${value.events} whole=${value.whole} />`}
  </div>`;
}

/** @param {{turn: any, events: any[]}} props */
function Facts({ turn, events }) {
  const usage = turn.usage;
  const context = readContext(events);
  const share = context ? Math.min(1, context.used / context.size) : 0;
  return html`<dl class="facts">
    <div><dt>State</dt><dd><span class=${`chip ${toneOf(turn)}`}>${sayOutcome(turn)}</span></dd></div>
    ${turn.error && html`<div class="tall"><dt>Error</dt><dd class="wrap">${showHidden(turn.error)}</dd></div>`}
    ${turn.duration_ms !== null && html`<div><dt>Took</dt><dd>${sayDuration(turn.duration_ms)}</dd></div>`}
    ${
      usage &&
      html`<div><dt>Tokens ${usage.estimated ? "(estimated)" : ""}</dt><dd>${sayCount(usage.input_tokens)} in, ${sayCount(usage.output_tokens)} out</dd></div>
      ${usage.cached_tokens > 0 && html`<div><dt>From a cache</dt><dd>${sayCount(usage.cached_tokens)}</dd></div>`}
      ${usage.cost_usd !== null && html`<div><dt>Cost ${usage.cost_estimated ? "(estimated)" : ""}</dt><dd>${sayMoney(usage.cost_usd)}</dd></div>`}`
    }
    ${
      context &&
      html`<div class="tall">
      <dt>Context</dt>
      <dd>
        <meter aria-label="How full the agent’s context is" value=${share} max="1" high="0.8"></meter>
        ${Math.round(share * 100)} % of ${sayCount(context.size)}
      </dd>
    </div>`
    }
  </dl>`;
}

/** @param {{events: any[], whole: boolean}} props */
function Times({ events, whole }) {
  const read = readSpans(events, Date.now());
  if (!read.spans.length) return null;
  return html`<section aria-label="Timeline" class="stack tight">
    <h2 class="section-name">Timeline</h2>
    <${Sums} read=${read} /><${Bars} read=${read} />
    ${!whole && html`<p class="quiet small">Only the beginning of a very long turn is drawn.</p>`}
  </section>`;
}
