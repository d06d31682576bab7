// @ts-check
// Drafts, one for each session, kept by the browser. Another tab or an undone turn may change one.
import { signal } from "../lib.js";

const PREFIX = "clawdforge.draft.";
const MOST = 200;

/** Rises when a draft was changed by something else than typing. */
export const draftsChanged = signal(0);

/** @param {string} id */
export function getDraft(id) {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + id) || "null")?.text || "";
  } catch {
    return "";
  }
}

/** @param {string} id @param {string} text */
export function keepDraft(id, text) {
  try {
    if (!text) localStorage.removeItem(PREFIX + id);
    else localStorage.setItem(PREFIX + id, JSON.stringify({ text, at: Date.now() }));
    prune();
  } catch {
    // storage may be full or forbidden; what is typed is still in the field
  }
}

/** Put words before a draft; what was typed stays. @param {string} id @param {string} words */
export function addToDraft(id, words) {
  const typed = getDraft(id);
  keepDraft(id, typed.trim() ? `${words}\n\n${typed}` : words);
  draftsChanged.value += 1;
}

/** Very old drafts make room for new ones. */
function prune() {
  const keys = Object.keys(localStorage).filter((key) => key.startsWith(PREFIX));
  if (keys.length <= MOST) return;
  const at = (/** @type {string} */ key) => JSON.parse(localStorage.getItem(key) || "{}").at || 0;
  keys.sort((a, b) => at(a) - at(b));
  for (const key of keys.slice(0, keys.length - MOST)) localStorage.removeItem(key);
}
