// @ts-check
// What can be done with a session, from the list and from its own screen: rename, pin, keep, share, schedule, who decides, close, delete.
import { html } from "../lib.js";
import { ask, choose } from "../shell/dialog.js";
import { Menu } from "../shell/menu.js";
import { go, link } from "../shell/router.js";
import { changeSession, openOrClose, purgeSession } from "./actions.js";
import { MODES } from "./new.js";
import { share } from "./shares.js";
import { retentionWords } from "./words.js";

/** @param {import("../store.js").Session} row */
export async function rename(row) {
  const title = await ask({ title: "Rename the session", name: "Title", value: row.title, yes: "Rename" });
  if (typeof title === "string") await changeSession(row.session_id, { title: title.slice(0, 500) });
}

/** @param {import("../store.js").Session} row */
export async function purge(row) {
  const yes = await ask({
    title: `Delete “${row.title || "New session"}”?`,
    text: `Its ${row.message_count} messages, its queue and its own folder are deleted for good. ${retentionWords(row)}`,
    yes: "Delete for good",
    bad: true,
  });
  if (yes) await purgeSession(row.session_id);
}

/** Who decides from now on. @param {import("../store.js").Session} row */
async function changeMode(row) {
  const now = MODES.find((one) => one[0] === row.permission_mode);
  const others = MODES.filter((one) => one !== now);
  const mode = await choose({
    title: "Who decides what the agent may do?",
    text: `${now ? `Now: ${now[1].toLowerCase()}. ${now[2]} ` : ""}What you choose holds from the next question on.`,
    choices: others.map((one) => [one[0], one[1]]),
  });
  if (mode) await changeSession(row.session_id, { permission_mode: mode });
}

/** @param {import("../store.js").Session} row @param {import("../shell/menu.js").Item[]} [more] what stands in between @returns {import("../shell/menu.js").Item[]} */
export function sessionItems(row, more = []) {
  const keep = row.retention === "keep";
  return [
    { name: "Rename", icon: "edit", run: () => rename(row) },
    { name: row.pinned ? "Unpin" : "Pin", icon: "pin", run: () => changeSession(row.session_id, { pinned: !row.pinned }) },
    { name: keep ? "Let it expire" : "Keep it until I delete it", icon: "keep", run: () => changeSession(row.session_id, { retention: keep ? "ttl" : "keep" }) },
    { name: "Share …", icon: "share", run: () => share(row) },
    { name: "Schedule …", icon: "clock", disabled: !row.live, run: () => go(link("schedules", { session: row.session_id })) },
    { name: "Permissions …", icon: "admin", run: () => changeMode(row) },
    ...more,
    { name: row.live ? "Close" : "Open again", icon: row.live ? "close" : "redo", run: () => openOrClose(row) },
    { name: "Delete …", icon: "trash", bad: true, run: () => purge(row) },
  ];
}

/** @param {{row: import("../store.js").Session}} props */
export function SessionMenu({ row }) {
  return html`<${Menu} label=${`More about ${row.title || "this session"}`} items=${sessionItems(row)} />`;
}
