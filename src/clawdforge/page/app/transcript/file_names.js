// @ts-check
// What attached files are called: a turn has only their tokens, and the server knows the name by each.
import { address } from "../api/client.js";

/** @type {Map<string, Promise<string>>} */
const known = new Map();

/** Remember a name that is known already. @param {string} token @param {string} name */
export const rememberName = (token, name) => void known.set(token, Promise.resolve(name));

/** The name of a file; empty where it was deleted. @param {string} token @returns {Promise<string>} */
export function nameOf(token) {
  const found = known.get(token) || ask(token);
  known.set(token, found);
  return found;
}

/** The name is in the head of the file's download; what follows is not read. @param {string} token */
async function ask(token) {
  const stop = new AbortController();
  try {
    const reply = await fetch(address(`/files/${encodeURIComponent(token)}`), { signal: stop.signal, credentials: "same-origin", redirect: "error" });
    const name = /filename\*=UTF-8''([^;]*)/.exec((reply.ok && reply.headers.get("Content-Disposition")) || "")?.[1];
    return name ? decodeURIComponent(name) : "";
  } catch {
    known.delete(token); // not reached: the next one who looks asks again
    return "";
  } finally {
    stop.abort();
  }
}
