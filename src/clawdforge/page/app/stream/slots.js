// @ts-check
// A browser opens few connections to one server, for all of its tabs together; over HTTP/1.1 they are six. Streams take up to
// four of them, so that requests get through however many tabs are open. Who finds none free reads by pages meanwhile.

const SLOTS = 4;

/**
 * Work with a connection that may stay open, or without one. Where the browser has no locks, as on plain HTTP, there always is one.
 * @template T @param {(stays: boolean) => Promise<T>} work @returns {Promise<T>}
 */
export async function withSlot(work) {
  const locks = navigator.locks;
  if (!locks) return work(true);
  for (let at = 0; at < SLOTS; at++) {
    const done = await locks.request(`clawdforge.stream.${at}`, { ifAvailable: true }, async (lock) => lock && { value: await work(true) });
    if (done) return done.value;
  }
  return work(false);
}
