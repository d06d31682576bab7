// @ts-check
// The links of a session that others read by: which there are, a new one, and the end of one.
import { html, render, useEffect, useState } from "../lib.js";
import { BASE, get, post, remove } from "../api/client.js";
import { Dialog } from "../shell/dialog.js";
import { copyText } from "../transcript/code.js";
import { tell } from "./actions.js";
import { showHidden } from "../screens/words.js";
import { moment } from "./words.js";

const DAY_SECS = 86_400;
const LASTING = [[1, "For a day"], [7, "For a week"], [30, "For 30 days"], [365, "For a year"]];
const TURNS = 200;

/** @typedef {{share_id: string, created_at: number, expires_at: number, up_to_turn: number}} Share */

/** Show the links of a session until the person is done. @param {import("../store.js").Session} row */
export function share(row) {
  const place = document.createElement("div");
  document.body.append(place);
  const close = () => {
    render(null, place);
    place.remove();
  };
  render(html`<${Shares} row=${row} onClose=${close} />`, place);
}

/** The newest turns that a link may end with, newest first. @param {import("../store.js").Session} row */
async function shareable(row) {
  const path = `/sessions/${encodeURIComponent(row.session_id)}/turns`;
  const reply = await get(path, { after: Math.max(0, row.turn_count - TURNS), limit: TURNS });
  return reply.turns.filter((/** @type {any} */ turn) => turn.state === "ended" && !turn.cut).reverse();
}

/** @param {{row: import("../store.js").Session, onClose: () => void}} props */
function Shares({ row, onClose }) {
  const path = `/sessions/${encodeURIComponent(row.session_id)}/shares`;
  const title = `Share “${row.title || "New session"}”`;
  const [shares, setShares] = useState(/** @type {Share[]} */ ([]));
  const [made, setMade] = useState("");
  const [days, setDays] = useState(7);
  const [turns, setTurns] = useState(/** @type {{turn_index: number, prompt: string}[]} */ ([]));
  const [last, setLast] = useState(0);
  const load = () => tell(async () => setShares((await get(path)).shares));
  useEffect(() => {
    load();
    tell(async () => setTurns(await shareable(row)));
  }, []);
  const make = () =>
    tell(async () => {
      const reply = await post(path, { expires_in_secs: days * DAY_SECS, up_to_turn: last || null });
      setMade(new URL(reply.path, BASE).href);
      await load();
    });
  const revoke = (/** @type {Share} */ one) => tell(async () => (await remove(`${path}/${encodeURIComponent(one.share_id)}`), setMade(""), await load()));
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <form onSubmit=${(/** @type {Event} */ event) => (event.preventDefault(), onClose())}>
      <h2 class="wrap">${title}</h2>
      <p>Whoever has a link can read what had been said when it was made. Nobody can write by it, and deleting the session ends it.</p>
      ${shares.length > 0 &&
      html`<ul class="shares" aria-label="Links">
        ${shares.map(
          (one) => html`<li class="row" key=${one.share_id}>
            <span class="grow small">Up to turn ${one.up_to_turn}, made ${moment(one.created_at)}<br /><span class="quiet">until ${moment(one.expires_at)}</span></span>
            <button type="button" class="button bad" aria-label=${`Revoke the link of ${moment(one.created_at)}`} onClick=${() => revoke(one)}>Revoke</button>
          </li>`,
        )}
      </ul>`}
      ${!made &&
      html`<div class="fields">
        <label class="field"><span class="name">How long</span>
          <select value=${days} onChange=${(/** @type {any} */ event) => setDays(Number(event.target.value))}>
            ${LASTING.map(([count, words]) => html`<option value=${count} key=${count} selected=${count === days}>${words}</option>`)}
          </select></label>
        <label class="field"><span class="name">Up to</span>
          <select value=${last} onChange=${(/** @type {any} */ event) => setLast(Number(event.target.value))}>
            <option value="0" selected=${last === 0}>All that has been said</option>
            ${turns.map((one) => html`<option value=${one.turn_index} key=${one.turn_index} selected=${last === one.turn_index}>Turn ${one.turn_index}: ${showHidden(one.prompt.slice(0, 60))}</option>`)}
          </select></label>
      </div>`}
      ${made &&
      html`<label class="field"><span class="name">Link</span>
        <input type="text" readonly value=${made} onFocus=${(/** @type {any} */ event) => event.target.select()} /></label>
        <p class="hint">It is shown only this once.</p>`}
      <div class="buttons">
        ${made
          ? html`<button type="button" class="button" onClick=${(/** @type {any} */ event) => copyText(made, event.target)}>Copy</button>`
          : html`<button type="button" class="button" onClick=${make}>Make a link</button>`}
        <button class="button main">Done</button>
      </div>
    </form>
  <//>`;
}
