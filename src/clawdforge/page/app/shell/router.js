// @ts-check
// The address after the hash: #/s/ID, #/inbox, #/search?q=… . One signal, and links that change it.
import { route } from "../store.js";

/** At /ui/shared the hash is the token of a share link. @param {string} hash @returns {import("../store.js").Route} */
export function parse(hash) {
  if (location.pathname.endsWith("/ui/shared")) return { name: "shared", parts: [hash.replace(/^#/, "")], query: new URLSearchParams() };
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const parts = path.split("/").filter(Boolean).map(decode);
  return { name: parts[0] || "", parts: parts.slice(1), query: new URLSearchParams(query) };
}

/** @param {string} part */
function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The address of a place: link("s", id) or link("search", {q}). @param {...(string|number|Record<string, string>)} parts */
export function link(...parts) {
  const last = parts[parts.length - 1];
  const query = typeof last === "object" ? `?${new URLSearchParams(/** @type {any} */ (parts.pop()))}` : "";
  return `#/${parts.map((part) => encodeURIComponent(String(part))).join("/")}${query}`;
}

/** Go there; `replace` leaves no trace in the history. @param {string} to @param {boolean} [replace] */
export function go(to, replace = false) {
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  route.value = parse(location.hash);
}

export function startRouter() {
  addEventListener("hashchange", () => (route.value = parse(location.hash)));
  addEventListener("popstate", () => (route.value = parse(location.hash)));
  route.value = parse(location.hash);
}
