// @ts-check
// Tells of what waits while nobody looks: in the tab's title, and as a notification where the browser allows it.
import { effect, signal } from "../../lib.js";
import { waiting } from "../../store.js";
import { go, link } from "../../shell/router.js";

const KEY = "clawdforge.notify";

/** "off", "on", "refused" by the browser, or "missing" as on plain HTTP. */
export const notifying = signal(begin());

function begin() {
  if (!("Notification" in globalThis) || !isSecureContext) return "missing";
  if (Notification.permission === "denied") return "refused";
  return Notification.permission === "granted" && localStorage.getItem(KEY) === "on" ? "on" : "off";
}

export async function switchNotifications() {
  if (notifying.value === "on") {
    localStorage.removeItem(KEY);
    notifying.value = "off";
    return;
  }
  const answer = await Notification.requestPermission();
  if (answer === "granted") localStorage.setItem(KEY, "on");
  notifying.value = answer === "granted" ? "on" : answer === "denied" ? "refused" : "off";
}

/** Notifies of each request once, and only where nobody sees the page. */
export function startNotifications() {
  /** @type {Set<string>} */
  const told = new Set();
  effect(() => {
    for (const permission of waiting.value) {
      if (told.has(permission.permission_id)) continue;
      told.add(permission.permission_id);
      if (notifying.value === "on" && document.hidden) tell(permission);
    }
  });
}

/** @param {any} permission */
function tell(permission) {
  const note = new Notification(`${permission.title || "A session"} waits for you`, {
    body: String(permission.tool).slice(0, 300),
    tag: permission.permission_id,
  });
  note.onclick = () => {
    window.focus();
    go(link("inbox"));
    note.close();
  };
}
