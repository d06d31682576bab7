// @ts-check
// Search over titles and everything that was said; a hit leads to its place in the session.
import { get } from "../../api/client.js";
import { html, useEffect, useRef, useState } from "../../lib.js";
import { go, link } from "../../shell/router.js";
import { Trouble } from "../loading.js";
import { sayAgo, showHidden } from "../words.js";
import { Snippet, foundWords } from "./snippet.js";

const WAIT_MS = 200;
const PAGE = 30;

/** @typedef {{hits: any[], titles: any[], next: string|null, error: Error|null, busy: boolean}} Found */
const NOTHING = /** @type {Found} */ ({ hits: [], titles: [], next: null, error: null, busy: false });

/** @param {{route: import("../../store.js").Route}} props */
export default function Search({ route }) {
  const asked = route.query.get("q") || "";
  const [words, setWords] = useState(asked);
  const [found, setFound] = useState(NOTHING);
  const field = useRef(/** @type {HTMLInputElement|null} */ (null));
  useEffect(() => field.current?.focus(), []);
  useEffect(() => setWords(asked), [asked]);
  useEffect(() => {
    const stop = new AbortController();
    const timer = setTimeout(() => {
      if (words !== asked) go(words ? link("search", { q: words }) : link("search"), true);
      look(words, stop.signal, setFound);
    }, WAIT_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [words]);
  const more = async () => {
    try {
      const page = await get("/search", { q: words, limit: PAGE, cursor: found.next });
      setFound((old) => ({ ...old, hits: [...old.hits, ...page.hits], next: page.next }));
    } catch (error) {
      setFound((old) => ({ ...old, error: /** @type {Error} */ (error) }));
    }
  };
  return html`<header class="head">
      <h1 class="out-of-sight">Search</h1>
      <input
        ref=${field}
        type="search"
        aria-label="Search in everything that was said"
        placeholder="Search in everything that was said"
        value=${words}
        onInput=${(/** @type {any} */ event) => setWords(event.target.value)}
      />
    </header>
    <div class="scroll" tabindex="0" role="region" aria-label="Found" aria-busy=${String(found.busy)}>
      <div class="page stack">
        ${found.error && html`<${Trouble} error=${found.error} again=${() => look(words, new AbortController().signal, setFound)} />`}
        ${found.titles.length > 0 && html`<${Titles} sessions=${found.titles} />`}
        ${found.hits.length > 0 && html`<${Hits} hits=${found.hits} />`}
        ${found.next && html`<button class="button" onClick=${more}>Show more</button>`}
        ${words.trim() && !found.busy && !found.error && !found.hits.length && !found.titles.length && html`<${Nothing} words=${words} />`}
        ${!words.trim() && html`<div class="empty"><p>Titles, prompts and answers of all sessions are searched, also of closed ones.</p></div>`}
      </div>
    </div>`;
}

/** @param {string} words @param {AbortSignal} signal @param {(found: any) => void} setFound */
async function look(words, signal, setFound) {
  if (!words.trim()) return setFound(NOTHING);
  setFound((/** @type {Found} */ old) => ({ ...old, busy: true }));
  try {
    const [messages, titles] = await Promise.all([
      get("/search", { q: words, limit: PAGE }, signal),
      get("/sessions", { q: words, limit: 8, include_closed: true }, signal),
    ]);
    if (!signal.aborted)
      setFound({ hits: messages.hits, next: messages.next, titles: titles.sessions, error: null, busy: false });
  } catch (error) {
    if (!signal.aborted) setFound({ ...NOTHING, error });
  }
}

/** @param {{sessions: any[]}} props */
function Titles({ sessions }) {
  return html`<section aria-label="Sessions by title">
    <h2 class="section-name">Sessions</h2>
    <ul class="hits">
      ${sessions.map(
        (one) => html`<li>
          <a class="hit" href=${link("s", one.session_id)}>
            <span class="grow cut">${showHidden(one.title || "Untitled session")}</span>
            <span class="small quiet">${one.agent} · ${sayAgo(one.updated_at)}</span>
          </a>
        </li>`,
      )}
    </ul>
  </section>`;
}

/** @param {{hits: any[]}} props */
function Hits({ hits }) {
  return html`<section aria-label="Messages">
    <h2 class="section-name">Messages</h2>
    <ul class="hits">
      ${hits.map(
        (hit) => html`<li key=${`${hit.session_id} ${hit.seq}`}>
          <a class="hit tall" href=${link("s", hit.session_id, { at: String(hit.seq), words: foundWords(hit.snippet) })}>
            <span class="row small">
              <span class="grow cut">${showHidden(hit.title || "Untitled session")}</span>
              <span class="quiet">${hit.role === "user" ? "you" : hit.role} · ${sayAgo(Date.parse(hit.ts) / 1000)}</span>
            </span>
            <${Snippet} text=${hit.snippet} />
          </a>
        </li>`,
      )}
    </ul>
  </section>`;
}

/** @param {{words: string}} props */
function Nothing({ words }) {
  return html`<div class="empty">
    <h2>Nothing found</h2>
    <p class="wrap">No title and no message has the words “${showHidden(words)}”.</p>
  </div>`;
}
