// @ts-check
// What can be done with a session from the list: rename, pin, keep, share, delete.
import { html } from "../lib.js";
import { ask } from "../shell/dialog.js";
import { Menu } from "../shell/menu.js";
import { changeSession, openOrClose, purgeSession } from "./actions.js";
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

/** @param {{row: import("../store.js").Session}} props */
export function SessionMenu({ row }) {
  const keep = row.retention === "keep";
  return html`<${Menu} label=${`More about ${row.title || "this session"}`} items=${[
    { name: "Rename", icon: "edit", run: () => rename(row) },
    { name: row.pinned ? "Unpin" : "Pin", icon: "pin", run: () => changeSession(row.session_id, { pinned: !row.pinned }) },
    { name: keep ? "Let it expire" : "Keep it", icon: "check", run: () => changeSession(row.session_id, { retention: keep ? "ttl" : "keep" }) },
    { name: "Share …", icon: "share", run: () => share(row) },
    { name: row.live ? "Close" : "Open again", icon: row.live ? "close" : "redo", run: () => openOrClose(row) },
    { name: "Delete …", icon: "trash", bad: true, run: () => purge(row) },
  ]} />`;
}
