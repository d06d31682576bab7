// @ts-check
// Keeps what waits up to date as long as somebody is logged in.
import { effect } from "../../lib.js";
import { me, waiting } from "../../store.js";
import { refresh } from "./actions.js";
import { startNotifications } from "./notifications.js";

const EVERY_MS = 4000;
const HIDDEN_MS = 20_000;

/** Call once, when the page starts. */
export function startInbox() {
  startNotifications();
  /** @type {AbortController|null} */
  let stop = null;
  effect(() => {
    const app = me.value?.app_name;
    stop?.abort();
    stop = null;
    if (!app) {
      waiting.value = [];
      return;
    }
    stop = new AbortController();
    look(stop.signal);
  });
}

/** @param {AbortSignal} stop */
async function look(stop) {
  while (!stop.aborted) {
    try {
      await refresh(stop);
    } catch {
      // the status line tells of a lost server; the next look is soon
    }
    await rest(stop);
  }
}

/** @param {AbortSignal} stop */
function rest(stop) {
  return new Promise((done) => {
    const wake = () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", wake);
      stop.removeEventListener("abort", wake);
      done(undefined);
    };
    const timer = setTimeout(wake, document.hidden ? HIDDEN_MS : EVERY_MS);
    document.addEventListener("visibilitychange", wake);
    stop.addEventListener("abort", wake);
  });
}
