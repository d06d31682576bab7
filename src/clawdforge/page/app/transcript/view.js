// @ts-check
// The transcript on the screen: mounts the window's rows, holds the anchor, knows when a person wants to read on alone.
import { Component, html, useEffect, useLayoutEffect, useMemo, useRef } from "../lib.js";
import { Icon } from "../shell/icons.js";
import { mark, patternOf, rowOf } from "./found.js";
import { EndRow } from "./kinds/end.js";
import { PermissionRow } from "./kinds/permission.js";
import { PromptRow } from "./kinds/prompt.js";
import { ImageRow, NoteRow, PlanRow, SummaryRow, ThinkingRow } from "./kinds/small.js";
import { TextRow } from "./kinds/text.js";
import { ToolRow } from "./kinds/tool.js";
import { redo } from "./turn_actions.js";
import { RowWindow } from "./window.js";

/** @type {Record<string, any>} */
const KINDS = { prompt: PromptRow, text: TextRow, thinking: ThinkingRow, tool: ToolRow, plan: PlanRow, note: NoteRow, summary: SummaryRow, image: ImageRow, permission: PermissionRow, end: EndRow };
const AWAY = new Set(["PageUp", "ArrowUp", "Home"]);

/** A row that cannot be drawn leaves the others alone. */
class Guard extends Component {
  /** @param {unknown} error */
  componentDidCatch(error) {
    reportError(error);
    this.setState({ failed: true });
  }

  /** @param {any} props @param {any} state */
  render(props, state) {
    return state.failed ? html`<p class="remark">Something here cannot be shown. The export has it.</p>` : props.children;
  }
}

/** @param {{row: import("./rows.js").Row, room: import("./room.js").Room}} props */
function RowView({ row, room }) {
  const hold = useMemo(() => (/** @type {HTMLElement|null} */ element) => (row.element = element), [row]);
  return html`<div class=${`entry ${row.kind}-entry`} data-row=${row.key} data-turn=${row.turn} ref=${hold}>
    <${Guard}><${KINDS[row.kind]} row=${row} room=${room} session=${room.id} /><//>
  </div>`;
}

/** What stands below the last row. @param {{room: import("./room.js").Room}} props */
function Tail({ room }) {
  const undone = room.undone.value;
  const rests = room.state.value === "ready" && room.running.value === null && room.next === null;
  if (rests && room.row?.can_redo) {
    return html`<div class="tail row"><span class="quiet">${undone === 1 ? "One turn was" : undone > 1 ? `${undone} turns were` : "Something was"} taken back.</span>
      <button class="button" onClick=${() => redo(room)}><${Icon} name="redo" />Redo</button></div>`;
  }
  return room.running.value !== null ? html`<div class="tail working" role="status"><span class="dot running"></span><span class="out-of-sight">The agent is working</span></div>` : null;
}

/** Everything that tells whether a person wants to leave the end, or is back. @param {HTMLElement} scroller @param {RowWindow} window */
function listen(scroller, window) {
  let touched = 0;
  let lastTop = 0;
  let fingerAt = 0;
  let towardEnd = false; // which way a person went last
  const turn = (/** @type {boolean} */ toward) => {
    touched = performance.now();
    towardEnd = toward;
  };
  const leave = () => {
    turn(false);
    if (window.following.value && scroller.scrollHeight > scroller.clientHeight) {
      window.following.value = false;
      window.note();
    }
  };
  const onWheel = (/** @type {WheelEvent} */ event) => (event.deltaY < 0 ? leave() : turn(true));
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    const typing = event.target instanceof HTMLTextAreaElement || event.target instanceof HTMLInputElement;
    if (AWAY.has(event.key) && !typing) leave();
    else turn(true);
  };
  const onFinger = (/** @type {TouchEvent} */ event) => void (fingerAt = event.touches[0].clientY);
  const onTouch = (/** @type {TouchEvent} */ event) => {
    const { clientY } = event.touches[0];
    if (clientY > fingerAt) leave();
    else if (clientY < fingerAt) turn(true);
    fingerAt = clientY;
  };
  const onGrab = (/** @type {PointerEvent} */ event) => event.target === scroller && (leave(), turn(true)); // the scroll bar, either way
  const onScroll = () => {
    const atEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 3;
    const down = scroller.scrollTop >= lastTop;
    lastTop = scroller.scrollTop;
    if (window.following.value) return;
    if (atEnd && down && towardEnd && performance.now() - touched < 1500 && window.end === window.room.rows.length && window.room.next === null) window.following.value = true;
    window.note();
    window.work();
  };
  scroller.addEventListener("wheel", onWheel, { passive: true });
  scroller.addEventListener("touchstart", onFinger, { passive: true });
  scroller.addEventListener("touchmove", onTouch, { passive: true });
  scroller.addEventListener("pointerdown", onGrab);
  scroller.addEventListener("keydown", onKey);
  scroller.addEventListener("scroll", onScroll, { passive: true });
}

/** @param {{room: import("./room.js").Room, at: number|null, words: string}} props */
export function Transcript({ room, at, words }) {
  const scroller = useRef(/** @type {HTMLElement|null} */ (null));
  const list = useRef(/** @type {HTMLElement|null} */ (null));
  const window = useMemo(() => new RowWindow(room), [room]);
  const pattern = useMemo(() => patternOf(words), [words]);
  const found = useRef(/** @type {import("./rows.js").Row|null} */ (null));
  const rev = window.rev.value;
  const version = room.shape.value;
  useEffect(() => {
    const element = /** @type {HTMLElement} */ (scroller.current);
    window.scroller = element;
    listen(element, window);
    const sizes = new ResizeObserver(() => window.settle());
    sizes.observe(/** @type {HTMLElement} */ (list.current));
    sizes.observe(element);
    return () => {
      window.closed = true;
      sizes.disconnect();
    };
  }, [window]);
  useEffect(() => {
    if (room.state.value !== "ready") return;
    const wanted = at === null ? null : room.groupAt(at);
    if (wanted && !window.lastMounted.length) {
      found.current = rowOf(wanted, /** @type {number} */ (at), pattern);
      found.current.unfolded = pattern !== null;
      window.show(found.current);
    } else window.work();
  }, [version, room.state.value, window]);
  useLayoutEffect(() => {
    window.settle();
    for (const group of new Set(window.lastMounted.map((row) => row.group))) room.upgrade(group);
  });
  useLayoutEffect(() => {
    const row = found.current;
    if (!pattern || !row) return;
    const all = window.lastMounted.filter((one) => one.group === row.group && one.element && (one === row || (one.kind === "text" && row.kind === "text")));
    const ranges = mark(all.map((one) => one.element), pattern);
    const first = ranges.find((range) => row.element?.contains(range.startContainer));
    if (first) window.reveal(row, first.getBoundingClientRect());
  }, [rev, version]);
  useEffect(() => () => void mark([], null), []);
  const rows = window.lastMounted.filter((row) => row.v === room.version);
  return html`<div class="reader">
    <div class="scroll transcript" ref=${scroller} tabindex="0" role="log" aria-label="Conversation" aria-busy=${String(room.running.value !== null)} aria-live="off">
      <div class="rows" ref=${list}>
        ${rows.map((row) => html`<${RowView} row=${row} room=${room} key=${row.key} />`)}
        ${window.end === room.rows.length && html`<${Tail} room=${room} />`}
      </div>
    </div>
    ${!window.following.value && rows.length > 0 &&
    html`<button class="button to-end" onClick=${() => window.toEnd()}><${Icon} name="down" />${room.running.value !== null ? "Follow the answer" : "To the end"}</button>`}
  </div>`;
}
