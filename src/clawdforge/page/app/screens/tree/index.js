// @ts-check
// The tree of a session: one row for each turn, cut ones hollow, forks as doors to other sessions.
import { html, useMemo, useState } from "../../lib.js";
import { link } from "../../shell/router.js";
import { Trouble, useLoad } from "../loading.js";
import { sayAgo, sayOutcome, showHidden } from "../words.js";
import { forkFrom, loadTree, redo, undoTo, view } from "./actions.js";
import { Piece, linesOf } from "./graph.js";
import { placeTurns, turnsAfter } from "./lanes.js";

const SHOWN = 200;

/** @param {{session: import("../../store.js").Session}} props */
export default function Tree({ session }) {
  const id = session.session_id;
  const { value, error, again } = useLoad((signal) => loadTree(id, signal), [id, session.turn_count, session.head]);
  const [last, setLast] = useState(/** @type {any} */ (null));
  const [chosen, setChosen] = useState(/** @type {number|null} */ (null));
  const [shown, setShown] = useState(SHOWN);
  if (value && last !== value) setLast(value);
  const tree = value || (last && last.id === id ? last : null);
  if (tree) tree.id = id;
  const placed = useMemo(() => (tree ? placeTurns(tree.turns) : { nodes: [], lanes: 1 }), [tree]);
  const lines = useMemo(() => linesOf(placed.nodes), [placed]);
  if (error) return html`<div class="side-page"><${Trouble} error=${error} again=${again} /></div>`;
  if (!tree) return html`<div class="side-page" aria-busy="true"></div>`;
  const rows = placed.nodes.slice(-shown).reverse();
  const here = tree.turns.findLast((/** @type {any} */ turn) => !turn.cut)?.turn_index;
  return html`<div class="side-page">
    ${!rows.length && html`<p class="quiet">Nothing has been said yet.</p>`}
    <ol class="tree" reversed>
      ${rows.map(
        (node) => html`<li key=${node.turn.turn_index} class=${node.turn.cut ? "was-cut" : ""}>
          <button class="tree-row" aria-expanded=${String(chosen === node.turn.turn_index)} onClick=${() => setChosen(chosen === node.turn.turn_index ? null : node.turn.turn_index)}>
            <${Piece} node=${node} lines=${lines} lanes=${placed.lanes} />
            <span class="grow">
              <span class="cut">${showHidden(node.turn.prompt || "…")}</span>
              <span class="tiny quiet">
                ${node.turn.turn_index === here ? "here · " : ""}${node.turn.turn_index} · ${node.turn.cut ? "cut" : sayOutcome(node.turn)} ·
                ${" "}${sayAgo(node.turn.queued_at)}
              </span>
            </span>
          </button>
          ${chosen === node.turn.turn_index && html`<${Choices} session=${session} turns=${tree.turns} turn=${node.turn} done=${again} />`}
          ${node.turn.forks.map((/** @type {any} */ fork) => html`<a class="tree-fork small cut" href=${link("s", fork.session_id)}>${showHidden(fork.title || "Fork")}</a>`)}
        </li>`,
      )}
    </ol>
    ${placed.nodes.length > shown && html`<button class="button" onClick=${() => setShown(shown + SHOWN)}>Show earlier turns</button>`}
    ${tree.forked_from && html`<a class="tree-fork small" href=${link("s", tree.forked_from.session_id)}>Forked from another session, after turn ${tree.forked_from.after_turn}</a>`}
  </div>`;
}

/** @param {{session: any, turns: any[], turn: any, done: () => void}} props */
function Choices({ session, turns, turn, done }) {
  const [files, setFiles] = useState(true);
  const after = turnsAfter(turns, turn);
  const rests = session.running_turn === null;
  const act = (/** @type {() => Promise<any>} */ work) => async () => (await work()) && done();
  return html`<div class="tree-choices">
    ${!turn.cut && html`<button class="button" onClick=${() => view(session, turn)}>View</button>`}
    ${!turn.cut && turn.state === "ended" && html`<button class="button" onClick=${act(() => forkFrom(session, turn))}>Fork from here</button>`}
    ${!turn.cut && after > 0 && html`<button class="button" disabled=${!rests} onClick=${act(() => undoTo(session, turns, turn, files))}>Undo to here</button>`}
    ${session.can_redo && (turn.cut || after === 0) && html`<button class="button" disabled=${!rests} onClick=${act(() => redo(session, files))}>Redo the last undo</button>`}
    <label class="row small"><input type="checkbox" checked=${files} onChange=${(/** @type {any} */ event) => setFiles(event.target.checked)} />Files too</label>
  </div>`;
}
