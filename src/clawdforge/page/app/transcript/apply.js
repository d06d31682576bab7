// @ts-check
// What each event does to the rows of its turn. A type that nobody knows here is skipped.

/** An agent may send anything. @param {unknown} value @returns {any[]} */
const list = (value) => (Array.isArray(value) ? value : []);

/** @param {unknown} value */
const words = (value) => (typeof value === "string" ? value : "");

/** @param {any} event */
function permissionOf(event) {
  return {
    permission_id: event.permission_id, tool: event.tool, kind: event.kind, options: list(event.options).filter((one) => one && typeof one === "object"),
    request: event.request || {}, state: "pending", requested_at: Date.parse(event.ts) / 1000,
  };
}

/** @param {any} content of an update that has no words @returns {{mime: string, data: string}|null} */
function pictureOf(content) {
  const one = Array.isArray(content) ? content[0] : content;
  return one?.type === "image" && typeof one.data === "string" ? { mime: String(one.mimeType || ""), data: one.data } : null;
}

/** Words or something else that the agent said. @param {import("./rows.js").Group} group @param {any} event */
function say(group, event) {
  const picture = !event.content && pictureOf(event.update?.content || event.message?.params?.update?.content);
  if (picture) group.pause(), group.add("image", picture);
  else if (event.type === "thinking") group.think(words(event.content));
  else group.say(words(event.content));
}

/** @param {import("./rows.js").Group} group @param {any} event */
function tool(group, event) {
  const update = event.update || event.message?.params?.update || {};
  const id = String(update.toolCallId ?? event.seq);
  const at = Date.parse(event.ts);
  const ended = update.status === "completed" || update.status === "failed";
  group.tool(id, {
    title: event.name ?? update.title, kind: update.kind, status: update.status, input: event.args ?? update.rawInput,
    output: update.rawOutput, content: update.content, locations: update.locations,
    ...(event.type === "tool_call" ? { began: at } : {}), ...(ended ? { ended: at } : {}),
  });
}

/** @type {Record<string, (group: import("./rows.js").Group, event: any) => void>} */
const DO = {
  text: say,
  thinking: say,
  tool_call: tool,
  tool_update: tool,
  plan(group, event) {
    const update = event.update || {};
    if (Array.isArray(update.entries)) group.plan(update.entries);
  },
  notice: (group, event) => group.note(String(event.update?.text || event.update?.message || event.update?.content?.text || "The agent sent a notice.")),
  compaction: (group, event) => event.update?.sessionUpdate === "compaction_update" && group.note("The agent makes its memory shorter."),
  "permission.requested"(group, event) {
    group.pause();
    group.add("permission", { permission: permissionOf(event) });
  },
  "permission.decided"(group, event) {
    const row = group.body.find((one) => one.kind === "permission" && one.permission.permission_id === event.permission_id);
    if (!row) return;
    row.permission = { ...row.permission, state: "decided", decision: event.decision, by: event.by, reason: event.reason };
    row.rev.value += 1;
  },
  "budget.warned": (group) => group.note("A budget has reached its warning.", "warn"),
  "output.truncated": (group, event) => group.note(`${event.dropped_bytes} bytes of output were dropped: ${event.reason}.`, "warn"),
  "turn.ended"(group, event) {
    const { outcome, stop_reason, error, code, usage, duration_ms, stopped_by } = event;
    group.finish({ state: "ended", outcome, stop_reason, error, code, usage, duration_ms, stopped_by, ended_at: Date.parse(event.ts) / 1000, last_seq: event.seq });
  },
};

/** @param {import("./rows.js").Group} group @param {any} event */
export function applyToTurn(group, event) {
  DO[event.type]?.(group, event);
}
