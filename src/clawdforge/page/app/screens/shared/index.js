// @ts-check
// What a share link shows: the transcript up to a turn, to read and no more. The link's token stays after the hash,
// so no server sees it in an address; it is sent as a credential, and nothing else of this browser is.
import { html, useEffect, useState } from "../../lib.js";
import { call } from "../../api/client.js";
import { moment } from "../../sessions/words.js";
import { Trouble, useLoad } from "../loading.js";
import { SharedMessage } from "./message.js";

const PAGE = 100;

/** @param {string} bearer @param {Record<string, unknown>} query @param {AbortSignal} [signal] */
const read = (bearer, query, signal) => call("GET", "/shared/messages", { bearer, query: { limit: PAGE, ...query }, signal });

/** @param {{route: import("../../store.js").Route}} props */
export default function Shared({ route }) {
  const token = route.parts[0] || "";
  const session = useLoad((signal) => call("GET", "/shared", { bearer: token, signal }), [token]);
  const newest = useLoad((signal) => read(token, { tail: 1 }, signal), [token]);
  const trouble = session.error || newest.error;
  const again = () => (session.again(), newest.again());
  useEffect(() => {
    if (session.value) document.title = `${session.value.title || "A session"} · clawdforge`;
  }, [session.value]);
  return html`<main class="shared" tabindex="0" aria-busy=${session.busy || newest.busy}>
    ${trouble && html`<${Trouble} error=${trouble} again=${again} />`}
    ${session.value && html`<${Head} session=${session.value} />`}
    ${newest.value && html`<${Messages} key=${token} token=${token} newest=${newest.value} />`}
  </main>`;
}

/** @param {{session: any}} props */
function Head({ session }) {
  return html`<header>
    <h1>${session.title || "A session"}</h1>
    <p class="hint">Shared to read, up to turn ${session.up_to_turn} · ${session.agent} · begun ${moment(session.created_at)} · until ${moment(session.expires_at)}</p>
  </header>`;
}

/** @param {{token: string, newest: any}} props */
function Messages({ token, newest }) {
  const [shown, setShown] = useState({ messages: newest.messages, previous: newest.previous, next: newest.next });
  const [trouble, setTrouble] = useState(/** @type {Error|null} */ (null));
  const more = async (/** @type {Record<string, unknown>} */ query, /** @type {(old: any, page: any) => any} */ join) => {
    try {
      const page = await read(token, query);
      setShown((old) => join(old, page));
      setTrouble(null);
    } catch (error) {
      setTrouble(/** @type {Error} */ (error));
    }
  };
  const before = () =>
    more({ before: shown.previous }, (old, page) => ({ ...old, previous: page.previous, messages: [...page.messages, ...old.messages] }));
  const after = () => more({ after: shown.next }, (old, page) => ({ ...old, next: page.next, messages: [...old.messages, ...page.messages] }));
  return html`<div class="rows">
    ${trouble && html`<${Trouble} error=${trouble} again=${() => setTrouble(null)} />`}
    ${shown.previous !== null && html`<button class="button" onClick=${before}>Show what came before</button>`}
    ${shown.messages.map((/** @type {any} */ message) => html`<${SharedMessage} key=${message.seq} message=${message} />`)}
    ${shown.messages.length === 0 && html`<div class="empty"><p>Nothing has been said yet.</p></div>`}
    ${shown.next !== null && html`<button class="button" onClick=${after}>Show what came after</button>`}
  </div>`;
}
