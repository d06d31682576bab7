// @ts-check
// Loads what a screen shows, drops answers that nobody waits for any more, and says what went wrong.
import { html, useEffect, useState } from "../lib.js";
import { isUnreachable } from "../api/client.js";

const AGAIN_MS = 2000;

/**
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {unknown[]} keys another key is another thing: the old one is forgotten
 * @returns {{value: T|null, error: Error|null, busy: boolean, again: () => void}}
 */
export function useLoad(load, keys) {
  const key = JSON.stringify(keys);
  const [found, setFound] = useState({
    key: "",
    value: /** @type {any} */ (null),
    error: /** @type {Error|null} */ (null),
    busy: true,
  });
  const [round, setRound] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    setFound((old) => ({ ...old, busy: true }));
    load(stop.signal).then(
      (value) => stop.signal.aborted || setFound({ key, value, error: null, busy: false }),
      (error) =>
        stop.signal.aborted || setFound((old) => ({ key, value: old.key === key ? old.value : null, error, busy: false })),
    );
    return () => stop.abort();
  }, [key, round]);
  const again = () => setRound((count) => count + 1);
  if (found.key !== key) return { value: null, error: null, busy: true, again };
  return { ...found, again };
}

/** What a screen shows instead of what it could not load. @param {{error: Error, again: () => void}} props */
export function Trouble({ error, again }) {
  useEffect(() => {
    if (!isUnreachable(error)) return;
    const timer = setTimeout(again, AGAIN_MS);
    return () => clearTimeout(timer);
  }, [error]);
  return html`<div class="trouble-box" role="alert">
    <span class="grow wrap">${error.message}</span>
    <button class="button" onClick=${again}>Try again</button>
  </div>`;
}

/** A number that grows every second, for what says how long ago something was. @param {number} [ms] */
export function useClock(ms = 1000) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => document.hidden || setNow(Date.now()), ms);
    return () => clearInterval(timer);
  }, [ms]);
  return now;
}
