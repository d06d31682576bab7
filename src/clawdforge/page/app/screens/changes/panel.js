// @ts-check
// The panel at the right: what the last turn changed, or one that is chosen.
import { html } from "../../lib.js";
import { link } from "../../shell/router.js";
import { TurnChooser, useTurn } from "../timeline/chooser.js";
import { ChangeList } from "./list.js";

/** @param {{session: import("../../store.js").Session}} props */
export default function FilesPanel({ session }) {
  const [turn, setTurn] = useTurn(session);
  if (!turn) return html`<div class="side-page"><p class="quiet">Nothing has been said yet.</p></div>`;
  return html`<div class="side-page stack">
    <${TurnChooser} session=${session} turn=${turn} setTurn=${setTurn}>
      <a class="small" href=${link("changes", session.session_id, turn)}>Open wide</a>
    <//>
    <${ChangeList} id=${session.session_id} turn=${turn} version=${turn === session.turn_count ? session.running_turn : 0} />
  </div>`;
}
