// @ts-check
// What waits for a person, over all sessions: read, decided, put off. Whoever comes second is told what the first chose.
import { get, post } from "../../api/client.js";
import { signal } from "../../lib.js";
import { notify, waiting } from "../../store.js";

/**
 * @typedef {{permission_id: string, session_id: string, title: string, agent: string, turn_index: number, tool: string,
 *   kind: string|null, request: any, options: any[], state: string, decision: string|null, reason: string|null,
 *   requested_at: number, expires_at: number|null}} Permission
 */

const DECISIONS = { allow_once: "allowed once", allow_always: "allowed for the whole session", reject: "refused" };
const PAGE = 100;

/** Decided a moment ago, by whomever: shown as a line, so that nobody wonders where it went. */
export const settled = signal(/** @type {Map<string, {permission: Permission, words: string}>} */ (new Map()));

/** Put off on this page; they go on waiting, and go on being counted. */
export const later = signal(/** @type {Set<string>} */ (new Set()));

/** Decisions of this page that are on their way: until they are answered, nobody else is said to have decided. @type {Set<string>} */
const deciding = new Set();

/** @param {string} id */
const isOpen = (id) => !settled.value.has(id) && !deciding.has(id);

/** @param {AbortSignal} [stop] */
export async function refresh(stop) {
  /** @type {Permission[]} */
  const found = [];
  let cursor;
  do {
    const page = await get("/permissions", { state: "pending", limit: PAGE, cursor }, stop);
    found.push(...page.permissions);
    cursor = page.next;
  } while (cursor);
  const there = new Set(found.map((one) => one.permission_id));
  const gone = waiting.value.filter((one) => !there.has(one.permission_id) && isOpen(one.permission_id));
  waiting.value = found.filter((one) => !settled.value.has(one.permission_id)); // the answer may be older than the decision
  for (const one of gone) lookUp(one);
}

/** Take in one that was asked or decided. @param {Permission} permission */
export function take(permission) {
  const others = waiting.value.filter((one) => one.permission_id !== permission.permission_id);
  if (permission.state === "pending") {
    waiting.value = [...others, permission].sort((a, b) => a.requested_at - b.requested_at);
    return;
  }
  const known = others.length < waiting.value.length;
  waiting.value = others;
  if (known && isOpen(permission.permission_id)) settle(permission, sayDecision(permission));
}

/** @param {Permission} permission @param {"allow_once"|"allow_always"|"reject"} decision */
export async function decide(permission, decision) {
  const id = permission.permission_id;
  deciding.add(id);
  try {
    const reply = await post(`/sessions/${permission.session_id}/permissions/${id}`, { decision });
    settle({ ...permission, ...reply.permission }, `You ${DECISIONS[decision]} it`);
  } catch (/** @type {any} */ failure) {
    const isGone = !waiting.value.some((one) => one.permission_id === id);
    if (isGone || failure.status === 409 || failure.status === 404) await lookUp(permission);
    if (!isGone && failure.status !== 409 && failure.status !== 404) notify(failure.message, "bad");
  }
  deciding.delete(id);
  waiting.value = waiting.value.filter((one) => !settled.value.has(one.permission_id));
}

/** @param {Permission} permission */
export function putOff(permission) {
  const next = new Set(later.value);
  if (!next.delete(permission.permission_id)) next.add(permission.permission_id);
  later.value = next;
}

/** @param {string} id */
export function forget(id) {
  const next = new Map(settled.value);
  next.delete(id);
  settled.value = next;
}

/** It waits no longer: say what became of it. @param {Permission} permission */
async function lookUp(permission) {
  try {
    const page = await get(`/sessions/${permission.session_id}/permissions`);
    const now = page.permissions.find((/** @type {Permission} */ one) => one.permission_id === permission.permission_id);
    settle({ ...permission, ...now }, now ? sayDecision(now) : "It is gone");
  } catch {
    settle(permission, "Its session is gone");
  }
}

/** @param {Permission} permission */
function sayDecision(permission) {
  if (permission.state === "expired" || !permission.decision) return "Nobody decided in time, or the turn ended";
  const word = /** @type {Record<string, string>} */ (DECISIONS)[permission.decision] || permission.decision;
  return `Somebody else decided: ${word}`;
}

/** @param {Permission} permission @param {string} words */
function settle(permission, words) {
  const kept = [...settled.value].slice(-9);
  settled.value = new Map([...kept, [permission.permission_id, { permission, words }]]);
}
