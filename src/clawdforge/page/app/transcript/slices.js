// @ts-check
// Work in slices of 8 ms: between two of them the browser paints and takes keys.

const SLICE_MS = 8;
const channel = new MessageChannel();
/** @type {(() => void)[]} */
const waiting = [];
channel.port1.onmessage = () => waiting.shift()?.();

/** Let the browser do something else first. @returns {Promise<void>} */
export function rest() {
  return new Promise((resolve) => {
    waiting.push(resolve);
    channel.port2.postMessage(null);
  });
}

/** Wait for the next painting, or a little where nothing is painted. @returns {Promise<void>} */
export function painted() {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, 100);
    requestAnimationFrame(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** Do it for each, in slices; stops early when `go` says no. @template T @param {T[]} all @param {(one: T) => void} work @param {() => boolean} go */
export async function each(all, work, go) {
  let began = performance.now();
  for (const one of all) {
    if (!go()) return false;
    work(one);
    if (performance.now() - began >= SLICE_MS) {
      await rest();
      began = performance.now();
    }
  }
  return go();
}
