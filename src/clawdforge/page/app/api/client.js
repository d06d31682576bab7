// @ts-check
// Asks the server. A failure becomes a sentence that a person can read; a lost login leads to the login screen.
import { me } from "../store.js";

/** The server, seen from /ui/: relative, so that a path in front of it does not matter. */
export const BASE = new URL("../", new URL(".", document.baseURI)).href;

/** What went wrong: `message` is for people, `code` and `status` for programs. */
export class Failure extends Error {
  /** @param {string} message @param {number} status @param {string} code @param {any} [body] */
  constructor(message, status, code, body) {
    super(message);
    this.status = status;
    this.code = code;
    this.body = body || {};
  }
}

/**
 * @typedef {{query?: Record<string, unknown>, body?: unknown, signal?: AbortSignal, key?: string,
 *   bearer?: string, form?: FormData}} Options
 */

/** @param {string} path @param {Record<string, unknown>} [query] */
export function address(path, query = {}) {
  const url = new URL(path.replace(/^\//, ""), BASE);
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") url.searchParams.set(name, String(value));
  }
  return url.href;
}

/** One request; the reply's JSON. @param {string} method @param {string} path @param {Options} [options] */
export async function call(method, path, options = {}) {
  /** @type {Record<string, string>} */
  const headers = { Accept: "application/json" };
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  if (options.key) headers["Idempotency-Key"] = options.key;
  if (options.bearer) headers.Authorization = `Bearer ${options.bearer}`;
  let reply;
  const url = address(path, options.query);
  if (method !== "GET") forgetEarly(); // a login, a logout: what was true before may not be any more
  try {
    reply = method === "GET" && !options.bearer ? await takeEarly(url) : null;
    reply ||= await fetch(url, {
      method,
      headers,
      body: options.form || (options.body === undefined ? undefined : JSON.stringify(options.body)),
      signal: options.signal,
      credentials: options.bearer ? "omit" : "same-origin",
      cache: "no-store",
      redirect: "error",
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw unreachable();
  }
  const body = await reply.json().catch(() => null);
  if (reply.ok && body !== null) return body;
  if (reply.ok && options.signal?.aborted) throw new DOMException("nobody waits for it", "AbortError");
  if (reply.ok) throw unreachable(); // the answer was cut off on its way
  if (reply.status === 401 && !options.bearer && path !== "/login") me.value = null;
  throw new Failure(sentence(body || {}, reply.status, path), reply.status, body?.code || "", body);
}

/** What `early.js` has asked for already; each answer is good once, a refusal never: who this is may have changed since.
 * @param {string} url @returns {Promise<Response|null>} */
async function takeEarly(url) {
  const asked = /** @type {Map<string, Promise<Response|null>>} */ (/** @type {any} */ (globalThis).early ?? forgetEarly());
  const found = asked.get(url);
  asked.delete(url);
  const reply = await found;
  return reply?.ok ? reply : null;
}

/** From now on the page asks for itself: an `early.js` that comes later finds that and asks for nothing. */
function forgetEarly() {
  return (/** @type {any} */ (globalThis).early = new Map());
}

const unreachable = () => new Failure("The server cannot be reached. What you wrote is kept; try again.", 0, "unreachable");

/** Whether it is worth to try again: the server did not answer. @param {unknown} error */
export const isUnreachable = (error) => error instanceof Failure && error.status === 0;

/** What the server says to programs that come without a good token. */
const BARE_REFUSAL = "a valid bearer token is required";

const UNKNOWN = "This server does not know that token. It may be cut off, revoked or expired, or belong to another server.";

/** @param {any} body @param {number} status @param {string} path */
function sentence(body, status, path) {
  const said = typeof body.error === "string" ? body.error : "";
  if (said === BARE_REFUSAL) return path === "/login" ? UNKNOWN : "You are not logged in here any more. Log in again.";
  if (!said) return `The server answered with ${status} and said no more.`;
  return said[0].toUpperCase() + said.slice(1) + (/[.!?]$/.test(said) ? "" : ".");
}

/** @param {string} path @param {Record<string, unknown>} [query] @param {AbortSignal} [signal] */
export const get = (path, query, signal) => call("GET", path, { query, signal });
/** @param {string} path @param {unknown} [body] @param {string} [key] */
export const post = (path, body = {}, key) => call("POST", path, { body, key });
/** @param {string} path @param {unknown} body */
export const patch = (path, body) => call("PATCH", path, { body });
/** @param {string} path */
export const remove = (path) => call("DELETE", path);

/** A name that no other request has; `crypto.randomUUID` is missing on plain HTTP. */
export function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
