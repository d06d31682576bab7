// @ts-check
// The one policy of our own: it lets the page start its own worker and nothing else.

const WORKER = new URL("./worker.js", import.meta.url).href;

const policy = /** @type {any} */ (globalThis).trustedTypes?.createPolicy("clawdforge", {
  createScriptURL(/** @type {string} */ url) {
    if (url !== WORKER) throw new TypeError("only the page's own worker may be started");
    return url;
  },
});

/** @returns {any} an address that `new Worker` takes */
export function workerAddress() {
  return policy ? policy.createScriptURL(WORKER) : WORKER;
}
