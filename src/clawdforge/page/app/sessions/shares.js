// @ts-check
// The links of a session that others read by: which there are, a new one, and the end of one.
import { html, render, useEffect, useState } from "../lib.js";
import { BASE, get, post, remove } from "../api/client.js";
import { Dialog } from "../shell/dialog.js";
import { copyText } from "../transcript/code.js";
import { tell } from "./actions.js";
import { moment } from "./words.js";

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

/** @param {{row: import("../store.js").Session, onClose: () => void}} props */
function Shares({ row, onClose }) {
  const path = `/sessions/${encodeURIComponent(row.session_id)}/shares`;
  const title = `Share “${row.title || "New session"}”`;
  const [shares, setShares] = useState(/** @type {Share[]} */ ([]));
  const [made, setMade] = useState("");
  const load = () => tell(async () => setShares((await get(path)).shares));
  useEffect(() => void load(), []);
  const make = () =>
    tell(async () => {
      const reply = await post(path);
      setMade(new URL(reply.path, BASE).href);
      await load();
    });
  const revoke = (/** @type {Share} */ one) => tell(async () => (await remove(`${path}/${encodeURIComponent(one.share_id)}`), setMade(""), await load()));
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <form onSubmit=${(/** @type {Event} */ event) => (event.preventDefault(), onClose())}>
      <h2 class="wrap">${title}</h2>
      <p>Whoever has a link can read what had been said when it was made, for a week. Nobody can write by it, and deleting the session ends it.</p>
      ${shares.length > 0 &&
      html`<ul class="shares" aria-label="Links">
        ${shares.map(
          (one) => html`<li class="row" key=${one.share_id}>
            <span class="grow small">Up to turn ${one.up_to_turn}, made ${moment(one.created_at)}<br /><span class="quiet">until ${moment(one.expires_at)}</span></span>
            <button type="button" class="button bad" aria-label=${`Revoke the link of ${moment(one.created_at)}`} onClick=${() => revoke(one)}>Revoke</button>
          </li>`,
        )}
      </ul>`}
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
