// @ts-check
// Every screen and every panel of the page. To add one: a folder in app/screens with an index.js whose default
// export is a component, and one line here. It is loaded when it is first shown.
import { waiting } from "../store.js";

/**
 * @typedef {{name: string, title: string, icon: string, place: "top"|"more"|null, load: () => Promise<any>,
 *   operator?: boolean, count?: () => number}} Screen
 * A screen's component is given {route}. `name` is the first part of its address.
 * @typedef {{name: string, title: string, load: () => Promise<any>}} Panel
 * A panel stands at the right of a session; its component is given {session}.
 */

/** @type {Screen[]} */
export const SCREENS = [
  { name: "s", title: "Chat", icon: "chat", place: null, load: () => import("../screens/chat/index.js") },
  {
    name: "inbox",
    title: "Waiting for you",
    icon: "inbox",
    place: "top",
    load: () => import("../screens/inbox/index.js"),
    count: () => waiting.value.length,
  },
  { name: "search", title: "Search", icon: "search", place: "top", load: () => import("../screens/search/index.js") },
  { name: "schedules", title: "Schedules", icon: "clock", place: "more", load: () => import("../screens/schedules/index.js") },
  { name: "usage", title: "Usage", icon: "usage", place: "more", load: () => import("../screens/usage/index.js") },
  { name: "changes", title: "Changes", icon: "file", place: null, load: () => import("../screens/changes/index.js") },
  { name: "admin", title: "Admin", icon: "admin", place: "more", load: () => import("../screens/admin/index.js"), operator: true },
];

/** Screens that need no login, without the frame: what a shared link shows. @type {Screen[]} */
export const OPEN_SCREENS = [
  { name: "shared", title: "Shared", icon: "share", place: null, load: () => import("../screens/shared/index.js") },
];

/** @type {Panel[]} */
export const PANELS = [
  { name: "turn", title: "Turn", load: () => import("../screens/timeline/panel.js") },
  { name: "files", title: "Files", load: () => import("../screens/changes/panel.js") },
  { name: "tree", title: "Tree", load: () => import("../screens/tree/index.js") },
];

/** @param {string} name */
export const findScreen = (name) => SCREENS.find((screen) => screen.name === name) || null;
