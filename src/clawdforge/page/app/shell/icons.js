// @ts-check
// Small line drawings, 24 by 24.
import { html } from "../lib.js";

/** @type {Record<string, string>} */
const PATHS = {
  plus: "M12 5v14M5 12h14",
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM20 20l-4-4",
  chat: "M5 5h14a1 1 0 0 1 1 1v9a1 1 0 0 1-1 1h-7l-5 4v-4H5a1 1 0 0 1-1-1V6a1 1 0 0 1 1-1z",
  list: "M4 6h16M4 12h16M4 18h10",
  inbox: "M4 13h4l1.5 3h5L16 13h4M4 13l2.5-7h11L20 13v5a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1z",
  more: "M5 12a1 1 0 1 0 2 0 1 1 0 1 0-2 0M11 12a1 1 0 1 0 2 0 1 1 0 1 0-2 0M17 12a1 1 0 1 0 2 0 1 1 0 1 0-2 0",
  usage: "M5 20V10M12 20V4M19 20v-7",
  admin: "M12 3l7 3v5c0 5-3 8-7 10-4-2-7-5-7-10V6z",
  panel: "M4 5h16v14H4zM15 5v14",
  clock: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM12 8v4l3 2",
  close: "M6 6l12 12M18 6L6 18",
  send: "M12 19V5M6 11l6-6 6 6",
  now: "M13 3L5 14h6l-1 7 8-11h-6z",
  keep: "M7 4h10v16l-5-4-5 4z",
  stop: "M7 7h10v10H7z",
  attach: "M20 11l-8.5 8.5a5 5 0 0 1-7-7L13 4a3.5 3.5 0 0 1 5 5l-8.5 8.5a2 2 0 0 1-3-3L14 7",
  copy: "M9 9h10v10H9zM5 15V5h10",
  check: "M5 13l4 4 10-11",
  undo: "M9 7L4 12l5 5M4 12h10a6 6 0 0 1 6 6",
  redo: "M15 7l5 5-5 5M20 12H10a6 6 0 0 0-6 6",
  retry: "M20 5v5h-5M20 10a8 8 0 1 0 0 5",
  edit: "M4 20h4L19 9l-4-4L4 16zM13 7l4 4",
  fork: "M7 4v10M7 20a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM17 8a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM17 8v2a4 4 0 0 1-4 4H7",
  pin: "M9 4h6l-1 6 3 3v2H7v-2l3-3zM12 15v5",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  down: "M6 9l6 6 6-6",
  right: "M9 6l6 6-6 6",
  up: "M6 15l6-6 6 6",
  back: "M15 6l-6 6 6 6",
  moon: "M20 14A8 8 0 1 1 10 4a7 7 0 0 0 10 10z",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.5 1.5M17.5 17.5L19 19M19 5l-1.5 1.5M6.5 17.5L5 19",
  leave: "M14 4h5v16h-5M10 8l-4 4 4 4M6 12h9",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  read: "M4 5h6a2 2 0 0 1 2 2v13a2 2 0 0 0-2-2H4zM20 5h-6a2 2 0 0 0-2 2v13a2 2 0 0 1 2-2h6z",
  terminal: "M4 5h16v14H4zM7 9l3 3-3 3M12 15h4",
  globe: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM3 12h18M12 3c3 3 3 15 0 18M12 3c-3 3-3 15 0 18",
  think: "M9 18h6M10 21h4M12 3a6 6 0 0 0-4 10.5c.7.7 1 1.500 1 2.500h6c0-1 .3-1.800 1-2.500A6 6 0 0 0 12 3z",
  tool: "M14 6a4 4 0 0 1 5-1l-3 3 1 2 2 1 3-3a4 4 0 0 1-6 5L9 20a2 2 0 0 1-3-3l7-7a4 4 0 0 1 1-4z",
  plan: "M4 6l1.500 1.500L8 5M11 6h9M4 12l1.500 1.500L8 11M11 12h9M4 18l1.500 1.500L8 17M11 18h9",
  move: "M5 12h14M13 6l6 6-6 6",
  share: "M16 6l-4-4-4 4M12 2v13M6 11H5v10h14V11h-1",
  tree: "M6 4v16M6 8h6a3 3 0 0 1 3 3v1M6 16h9M15 12h.01M18 16h.01",
};

/** @param {{name: string, label?: string}} props */
export function Icon({ name, label }) {
  return html`<svg class="icon" viewBox="0 0 24 24" role=${label ? "img" : null} aria-label=${label} aria-hidden=${label ? null : "true"}>
    <path d=${PATHS[name] || PATHS.tool} />
  </svg>`;
}
