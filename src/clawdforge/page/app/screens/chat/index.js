// @ts-check
// The screen of one session: its head, the transcript, the composer.
import { html, useEffect, useMemo } from "../../lib.js";
import { activityOf, current, panelOpen } from "../../store.js";
import { Composer } from "../../composer/composer.js";
import { sessionItems } from "../../sessions/menu.js";
import { retentionWords } from "../../sessions/words.js";
import { Icon } from "../../shell/icons.js";
import { Menu } from "../../shell/menu.js";
import { link } from "../../shell/router.js";
import { PANELS } from "../../shell/screens.js";
import { showDirections } from "../../transcript/directions.js";
import { Room } from "../../transcript/room.js";
import { fork } from "../../transcript/turn_actions.js";
import { Transcript } from "../../transcript/view.js";
import { MODES } from "../../sessions/new.js";

/** @param {{room: Room}} props */
function Head({ room }) {
  const row = current.value;
  if (!row) return html`<header class="head"></header>`;
  const doing = activityOf(row);
  const mode = MODES.find((one) => one[0] === row.permission_mode);
  return html`<header class="head">
    <h1 class="grow cut" title=${showDirections(row.title)}>${showDirections(row.title || "New session")}</h1>
    <span class="about small quiet cut">${row.agent}${row.model ? ` · ${row.model}` : ""}${mode ? ` · ${mode[1].toLowerCase()}` : ""}${row.mcp_servers?.length ? ` · ${row.mcp_servers.join(", ")}` : ""}</span>
    ${doing !== "idle" && html`<span class=${`chip ${doing === "waiting" ? "warn" : doing === "failed" || doing === "interrupted" ? "bad" : "accent"}`}><span class=${`dot ${doing}`}></span>${doing}</span>`}
    <${Menu} label="More about this session" items=${sessionItems(row, [{ name: "Fork", icon: "fork", run: () => fork(room) }])} />
    ${PANELS.length > 0 && html`<button class="icon-button" aria-label="Show or hide the panel" aria-pressed=${String(panelOpen.value)} onClick=${() => (panelOpen.value = !panelOpen.value)}><${Icon} name="panel" /></button>`}
  </header>`;
}

/** @param {{room: Room, at: number|null, words: string}} props */
function Body({ room, at, words }) {
  if (room.state.value === "failed" && room.missing.value) {
    return html`<div class="empty grow"><h2>This session cannot be shown</h2><p>It was deleted, or it never was one of yours.</p>
      <a class="button" href=${link("sessions")}>All sessions</a></div>`;
  }
  if (room.state.value === "failed") {
    return html`<div class="empty"><h2>This session cannot be shown</h2><p>${room.problem.value}</p>
      <button class="button" onClick=${() => ((room.state.value = "loading"), room.open(at))}>Try again</button></div>`;
  }
  const empty = room.state.value === "ready" && room.shape.value > 0 && !room.rows.length && !room.queue.value.length && room.running.value === null && !room.row?.can_redo;
  return html`${empty && html`<div class="empty beginning"><h2>What shall we do?</h2><p>Write below. ${current.value ? retentionWords(current.value) : ""}</p></div>`}
    <${Transcript} room=${room} at=${at} words=${words} />`;
}

/** @param {{route: import("../../store.js").Route}} props */
export default function Chat({ route }) {
  const id = route.parts[0] || "";
  const at = route.query.get("at");
  const place = at && /^\d+$/.test(at) ? Number(at) : null;
  const words = (place !== null && route.query.get("words")) || "";
  const room = useMemo(() => new Room(id), [id, place]);
  useEffect(() => {
    room.open(place);
    return () => room.close();
  }, [room]);
  return html`<${Head} room=${room} />
    <${Body} room=${room} at=${place} words=${words} key=${`${id} ${place} ${words}`} />
    ${!room.missing.value && html`<${Composer} room=${room} key=${id} />`}`;
}
