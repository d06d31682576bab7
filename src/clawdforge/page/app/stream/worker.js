// @ts-check
// Reads one session's events apart from the page: one batch at a time, goes on where it was, stops when the page is slow.
import { Pending } from "./fold.js";
import { Frames } from "./sse.js";

const FULL_CHARS = 512 * 1024;
const FULL_EVENTS = 2000;
const SILENT_MS = 45000;
const FIRST_MS = 300;
const LONGEST_MS = 10000;
const OFTEN_MS = 1000;
const OFTEN_TRIES = 60;

const pending = new Pending();
let url = "";
let cursor = 0;
let open = false;
let taken = true;
let tries = 0;
/** @type {AbortController|null} */
let reading = null;
/** @type {(() => void)|null} */
let roomMade = null;
/** @type {(() => void)|null} */
let retryNow = null;

/** @param {any} message */
const tell = (message) => /** @type {any} */ (self).postMessage(message);

function handOver() {
  if (!taken || !pending.size) return;
  taken = false;
  const events = pending.take();
  tell({ type: "batch", events, waiting: pending.size });
  if (pending.size < FULL_EVENTS && pending.chars < FULL_CHARS) roomMade?.();
}

/** @param {string} data */
function onFrame(data) {
  let event;
  try {
    event = JSON.parse(data);
  } catch {
    return; // what is no JSON is no event of ours
  }
  if (typeof event.seq !== "number" || event.seq <= cursor) return;
  cursor = event.seq;
  pending.add(event);
}

/** @param {AbortController} control */
async function read(control) {
  const reply = await fetch(`${url}${url.includes("?") ? "&" : "?"}after=${cursor}`, {
    headers: { Accept: "text/event-stream" },
    credentials: "same-origin",
    cache: "no-store",
    signal: control.signal,
  });
  if (!reply.ok || !reply.body) {
    const body = await reply.json().catch(() => ({}));
    return { status: reply.status, text: String(body.error || "") };
  }
  tries = 0;
  tell({ type: "state", state: "live" });
  const frames = new Frames();
  const decoder = new TextDecoder();
  const reader = reply.body.getReader();
  for (;;) {
    const silent = setTimeout(() => control.abort(), SILENT_MS);
    const { done, value } = await reader.read().finally(() => clearTimeout(silent));
    if (done) return { status: 200, text: "" };
    frames.push(decoder.decode(value, { stream: true }), onFrame);
    handOver();
    if (pending.size >= FULL_EVENTS || pending.chars >= FULL_CHARS) {
      await new Promise((resolve) => (roomMade = () => resolve(null)));
      roomMade = null;
      if (control.signal.aborted) return { status: 0, text: "" };
    }
  }
}

async function run() {
  while (open) {
    const control = (reading = new AbortController());
    const end = await read(control).catch(() => ({ status: 0, text: "" }));
    if (!open || reading !== control) return;
    if (end.status === 401 || end.status === 403 || end.status === 404 || end.status === 410) {
      open = false;
      tell({ type: "state", state: "gone", status: end.status, text: end.text });
      return;
    }
    const longest = tries < OFTEN_TRIES ? OFTEN_MS : LONGEST_MS;
    const ms = Math.round(Math.min(longest, FIRST_MS * 2 ** Math.min(tries, 10)) * (0.8 + 0.4 * Math.random()));
    tries += 1;
    tell({ type: "state", state: "waiting", ms, tries });
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      retryNow = () => (clearTimeout(timer), resolve(null));
    });
    retryNow = null;
  }
}

function close() {
  open = false;
  reading?.abort();
  reading = null;
  roomMade?.();
  retryNow?.();
}

self.onmessage = (/** @type {MessageEvent} */ { data }) => {
  if (data.type === "open") {
    close();
    url = data.url;
    cursor = Math.max(cursor, data.after);
    open = true;
    run();
  } else if (data.type === "taken") {
    taken = true;
    handOver();
  } else if (data.type === "again") {
    retryNow?.();
  } else if (data.type === "close") {
    close();
  }
};
