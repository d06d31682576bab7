// @ts-check
// The tab's one worker: keeps the readers that the page has asked for, each under its number.
import { Reader } from "./reader.js";

/** @type {Map<number, Reader>} */
const readers = new Map();

/** @param {any} message */
const tell = (message) => /** @type {any} */ (self).postMessage(message);

self.onmessage = (/** @type {MessageEvent} */ { data }) => {
  let reader = readers.get(data.id);
  if (data.type === "open") {
    if (!reader) readers.set(data.id, (reader = new Reader(data.url, (message) => tell({ id: data.id, ...message }))));
    reader.open(data.after, data.slow);
  } else if (data.type === "taken") {
    reader?.take();
  } else if (data.type === "again") {
    for (const one of readers.values()) one.again();
  } else if (data.type === "close") {
    reader?.close();
  } else if (data.type === "end") {
    reader?.close();
    readers.delete(data.id);
  }
};
