// Asks for what every visit needs while the page itself is still on its way. A plain script, since modules run later.
(function () {
  if (/** @type {any} */ (globalThis).early) return; // the page was faster and has asked for itself
  const [name, id] = location.hash.replace(/^#\//, "").split(/[/?]/);
  if (location.hash.includes("code=") || name === "shared") return; // who this is will be known later, or does not matter
  const paths = ["login", ...(name === "s" && id ? [`sessions/${id}`] : [])];
  const ask = (/** @type {string} */ url) => fetch(url, { headers: { Accept: "application/json" }, cache: "no-store", redirect: "error" });
  const base = new URL("../", location.href);
  /** @type {any} */ (globalThis).early = new Map(paths.map((path) => new URL(path, base).href).map((url) => [url, ask(url).catch(() => null)]));
})();
