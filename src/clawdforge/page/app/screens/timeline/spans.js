// @ts-check
// Reads the events of one turn into bars: when it waited, thought, wrote, used a tool or asked a person.

/**
 * @typedef {'queued'|'starting'|'thinking'|'text'|'tool'|'permission'} Kind
 * @typedef {{kind: Kind, label: string, from: number, to: number, open: boolean, state: string}} Span
 */

/**
 * Words belong to one span as long as nothing else comes between them.
 * @param {any[]} events compact events of one turn, in order
 * @param {number} now where a bar ends that has not ended
 * @returns {{spans: Span[], from: number, to: number}}
 */
export function readSpans(events, now) {
  /** @type {Span[]} */
  const spans = [];
  /** @type {Map<string, Span>} */
  const open = new Map();
  /** @type {Span|null} */
  let words = null;
  let last = 0;
  let ended = false;

  /** @param {string} key @param {Kind} kind @param {string} label @param {number} at */
  const begin = (key, kind, label, at) => {
    const span = { kind, label, from: at, to: at, open: true, state: "" };
    spans.push(span);
    open.set(key, span);
    return span;
  };
  /** @param {string} key @param {number} at @param {string} [state] */
  const end = (key, at, state = "") => {
    const span = open.get(key);
    if (!span) return;
    span.to = Math.max(span.from, at);
    span.open = false;
    span.state = state;
    open.delete(key);
  };

  for (const event of events) {
    const at = Date.parse(event.ts);
    if (Number.isNaN(at)) continue;
    last = Math.max(last, at);
    if (words && event.type !== words.kind) words = null;
    if (event.type === "turn.queued") begin("queued", "queued", "Waiting in the queue", at);
    else if (event.type === "turn.started") {
      end("queued", at);
      begin("starting", "starting", "Waiting for the agent", at);
    } else if (event.type === "thinking" || event.type === "text") {
      end("starting", at);
      if (!words) {
        words = begin(`words ${event.seq}`, event.type, event.type === "text" ? "Writing" : "Thinking", at);
        open.delete(`words ${event.seq}`);
        words.open = false;
      }
      words.to = Math.max(words.to, at);
    } else if (event.type === "tool_call") {
      end("starting", at);
      begin(`tool ${callOf(event)}`, "tool", String(event.name ?? "A tool"), at);
      settle(event, at, end);
    } else if (event.type === "tool_update") settle(event, at, end);
    else if (event.type === "permission.requested") begin(`ask ${event.permission_id}`, "permission", `Asked: ${event.tool}`, at);
    else if (event.type === "permission.decided") end(`ask ${event.permission_id}`, at, String(event.decision ?? ""));
    else if (event.type === "turn.ended") {
      ended = true;
      for (const key of [...open.keys()]) end(key, at, String(event.outcome ?? ""));
    }
  }
  const until = ended ? last : Math.max(now, last);
  for (const span of open.values()) span.to = until;
  const from = spans.length ? Math.min(...spans.map((span) => span.from)) : 0;
  return { spans, from, to: Math.max(from, until) };
}

/** @param {any} event */
function callOf(event) {
  return String(event.update?.toolCallId ?? event.message?.params?.update?.toolCallId ?? event.seq);
}

/** @param {any} event @param {number} at @param {(key: string, at: number, state?: string) => void} end */
function settle(event, at, end) {
  const status = event.update?.status;
  if (status === "completed" || status === "failed") end(`tool ${callOf(event)}`, at, status);
}
