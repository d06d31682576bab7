// @ts-check
// The page's end of its streams: one worker for the tab, what is followed, and silence while the tab is hidden.
import { address } from "../api/client.js";
import { me } from "../store.js";
import { workerAddress } from "./trusted.js";
import { forgetState, sayState } from "./states.js";

/**
 * @typedef {{url: string, cursor: number|null, name: "session"|"list", whileHidden: boolean,
 *   take: (events: any[]) => Promise<void>}} Followed
 */

const AGAIN_MS = 1000;

/** @type {Map<number, Followed>} */
const followed = new Map();
let lastId = 0;
/** @type {Worker|null} */
let worker = null;

/** Follow a session. `take` is called with events in order, each once; when it resolves the next batch may come.
 * @param {string} id @param {number} after @param {(events: import("./fold.js").Event[]) => Promise<void>} take
 * @returns {() => void} end it
 */
export function follow(id, after, take) {
  const url = address(`/sessions/${encodeURIComponent(id)}/events`, { form: "compact" });
  return begin({ url, cursor: after, name: "session", whileHidden: false, take });
}

/** Follow what changes in the app's list; a hidden tab looks now and then. @param {(changes: any[]) => Promise<void>} take @returns {() => void} end it */
export function followChanges(take) {
  return begin({ url: address("/events"), cursor: null, name: "list", whileHidden: true, take });
}

/** @param {Followed} what */
function begin(what) {
  const id = ++lastId;
  followed.set(id, what);
  if (worker) open(id, what);
  else startWorker();
  return () => {
    if (!followed.delete(id)) return;
    worker?.postMessage({ type: "end", id });
    forgetState(what.name);
  };
}

function startWorker() {
  const started = (worker = new Worker(workerAddress(), { type: "module" }));
  started.onmessage = ({ data }) => {
    const what = followed.get(data.id);
    if (what && worker === started) onMessage(data.id, what, data);
  };
  started.onerror = () => {
    // Its files could not be fetched, or it stumbled. Another one goes on where the page is.
    started.terminate();
    if (worker !== started) return;
    worker = null;
    for (const what of followed.values()) sayState(what.name, "waiting", AGAIN_MS, what.cursor);
    setTimeout(() => worker || startWorker(), AGAIN_MS);
  };
  for (const [id, what] of followed) open(id, what);
}

/** @param {number} id @param {Followed} what */
function open(id, what) {
  if (document.hidden && !what.whileHidden) return sayState(what.name, "hidden", 0, what.cursor);
  sayState(what.name, "connecting", 0, what.cursor);
  worker?.postMessage({ type: "open", id, url: what.url, after: what.cursor, slow: document.hidden });
}

/** @param {number} id @param {Followed} what @param {any} data */
async function onMessage(id, what, data) {
  if (data.type !== "batch") {
    if (data.state === "gone" && data.status === 401) me.value = null;
    return sayState(what.name, data.state, data.ms, what.cursor, data.text);
  }
  const to = worker;
  what.cursor = data.cursor; // before it is shown: whatever happens meanwhile, nothing is taken twice
  await what.take(data.events);
  if (followed.get(id) !== what) return;
  sayState(what.name, "taken", 0, what.cursor);
  to?.postMessage({ type: "taken", id });
}

/** Call once, when the page starts. */
export function startStreams() {
  const again = () => worker?.postMessage({ type: "again" });
  addEventListener("online", again);
  document.addEventListener("visibilitychange", () => {
    for (const [id, what] of followed) {
      if (document.hidden) worker?.postMessage({ type: "close", id });
      open(id, what);
    }
  });
}
