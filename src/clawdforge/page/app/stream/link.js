// @ts-check
// The page's end of a stream: a worker for the session on the screen, its state in words, silence while hidden.
import { address } from "../api/client.js";
import { me, status } from "../store.js";
import { workerAddress } from "./trusted.js";

/**
 * Follow a session. `onBatch` is called with events in order, each once; when it resolves the next batch may come.
 * @param {string} id @param {number} after
 * @param {(events: import("./fold.js").Event[], waiting: number) => Promise<void>} onBatch
 * @returns {() => void} end it
 */
export function follow(id, after, onBatch) {
  const worker = new Worker(workerAddress(), { type: "module" });
  const url = address(`/sessions/${encodeURIComponent(id)}/events`, { form: "compact" });
  let cursor = after;
  let ended = false;
  const say = (/** @type {any} */ state, /** @type {string} */ text) => !ended && (status.value = { state, text });
  const words = () => `live · event ${cursor.toLocaleString()}`;
  worker.onmessage = async ({ data }) => {
    if (ended) return;
    if (data.type === "batch") {
      await onBatch(data.events, data.waiting);
      cursor = data.events[data.events.length - 1].seq;
      if (status.value.state === "live") say("live", words());
      worker.postMessage({ type: "taken" });
    } else if (data.state === "live") {
      say("live", words());
    } else if (data.state === "waiting") {
      const seconds = Math.max(1, Math.round(data.ms / 1000));
      say(navigator.onLine ? "waiting" : "offline", `${navigator.onLine ? "connection lost" : "offline"} · trying again in ${seconds} s · nothing is lost, event ${cursor.toLocaleString()}`);
    } else if (data.state === "gone") {
      if (data.status === 401) me.value = null;
      say("gone", data.text || "the stream has ended");
    }
  };
  worker.onerror = () => say("gone", "the reader of events could not be started; reload the page");
  const open = () => {
    say("reading", "connecting …");
    worker.postMessage({ type: "open", url, after: cursor });
  };
  const onVisible = () => {
    if (!document.hidden) return open();
    worker.postMessage({ type: "close" });
    say("idle", "paused while the tab is hidden");
  };
  const again = () => worker.postMessage({ type: "again" });
  document.addEventListener("visibilitychange", onVisible);
  addEventListener("online", again);
  if (!document.hidden) open();
  return () => {
    ended = true;
    worker.postMessage({ type: "close" });
    worker.terminate();
    document.removeEventListener("visibilitychange", onVisible);
    removeEventListener("online", again);
    status.value = { state: "idle", text: "" };
  };
}
