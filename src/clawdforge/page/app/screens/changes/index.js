// @ts-check
// The changes of a turn on the whole stage, with room for long lines: #/changes/SESSION/TURN.
import { get } from "../../api/client.js";
import { html } from "../../lib.js";
import { go, link } from "../../shell/router.js";
import { useLoad, Trouble } from "../loading.js";
import { TurnChooser } from "../timeline/chooser.js";
import { showHidden } from "../words.js";
import { ChangeList } from "./list.js";

/** @param {{route: import("../../store.js").Route}} props */
export default function Changes({ route }) {
  const [id, given] = route.parts;
  const { value, error, again } = useLoad((signal) => get(`/sessions/${encodeURIComponent(id)}`, {}, signal), [id]);
  const turn = Number(given) || value?.turn_count || 0;
  return html`<header class="head">
      <h1 class="grow cut">Changes · ${showHidden(value?.title || "")}</h1>
      <a class="button" href=${link("s", id)}>Back to the session</a>
    </header>
    <div class="scroll" tabindex="0" role="region" aria-label="Changes">
      <div class="page wide stack">
        ${error && html`<${Trouble} error=${error} again=${again} />`}
        ${
          value &&
          turn > 0 &&
          html`<${TurnChooser} session=${value} turn=${turn} setTurn=${(/** @type {number} */ next) => go(link("changes", id, next), true)} />
          <${ChangeList} key=${turn} id=${id} turn=${turn} wide />`
        }
      </div>
    </div>`;
}
