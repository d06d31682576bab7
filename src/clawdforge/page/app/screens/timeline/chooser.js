// @ts-check
// Which turn of a session is looked at: the newest as it comes, until somebody steps back.
import { html, useEffect, useState } from "../../lib.js";
import { Icon } from "../../shell/icons.js";

/** @param {import("../../store.js").Session} session @returns {[number, (turn: number) => void]} */
export function useTurn(session) {
  const [chosen, setChosen] = useState(/** @type {number|null} */ (null));
  useEffect(() => setChosen(null), [session.session_id]);
  const newest = session.turn_count;
  const turn = chosen === null || chosen > newest ? newest : chosen;
  return [turn, (next) => setChosen(next >= newest ? null : next)];
}

/** @param {{session: import("../../store.js").Session, turn: number, setTurn: (turn: number) => void, children?: any}} props */
export function TurnChooser({ session, turn, setTurn, children }) {
  return html`<div class="row">
    <button class="icon-button" aria-label="The turn before" disabled=${turn <= 1} onClick=${() => setTurn(turn - 1)}><${Icon} name="back" /></button>
    <span class="small">Turn ${turn} of ${session.turn_count}</span>
    <button class="icon-button" aria-label="The turn after" disabled=${turn >= session.turn_count} onClick=${() => setTurn(turn + 1)}><${Icon} name="right" /></button>
    <span class="grow"></span>${children}
  </div>`;
}
