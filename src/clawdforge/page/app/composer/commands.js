// @ts-check
// Words that begin with a slash: what each does, and which fit what is typed. What is no command of ours goes to the agent.
import { address, get, patch, post } from "../api/client.js";
import { brief, retentionWords } from "../sessions/words.js";
import { ask } from "../shell/dialog.js";
import { keepSessions, notify } from "../store.js";
import * as actions from "../transcript/turn_actions.js";

/** @typedef {{name: string, about: string, takes?: string, run?: (room: import("../transcript/room.js").Room, words: string) => unknown}} Command */

/** @type {Command[]} */
export const COMMANDS = [
  { name: "retry", about: "Run the last prompt again", run: (room) => actions.retry(room) },
  { name: "undo", about: "Take back the last turn, if you like with its files", run: (room) => actions.undo(room) },
  { name: "redo", about: "Bring back what was undone", run: (room) => actions.redo(room) },
  { name: "status", about: "How the session stands", run: status },
  { name: "usage", about: "What the session has used", run: usage },
  { name: "compact", about: "Replace the history by a summary", run: (room) => history(room, "compact", "The agent writes a summary and goes on with it. Earlier messages are archived.") },
  { name: "clear", about: "Archive the transcript and start afresh", run: (room) => history(room, "clear", "The messages are archived, and the agent starts with an empty memory.") },
  { name: "fork", about: "A new session with the same history", run: (room) => actions.fork(room) },
  { name: "export", about: "Download the session", takes: "md or html", run: download },
  { name: "agent", about: "Go on with another agent", takes: "NAME", run: (room, words) => change(room, { agent: words }) },
  { name: "model", about: "Go on with another model", takes: "NAME", run: (room, words) => change(room, { model: words }) },
];

/** A failure is told by whoever sent the command, and the line stays. @param {import("../transcript/room.js").Room} room @param {Record<string, string>} to */
async function change(room, to) {
  keepSessions([await patch(room.path, to)]);
}

/** What a command lacks, in words, or nothing. @param {{command: Command, words: string}} found */
export function lacking({ command, words }) {
  return command.takes === "NAME" && !words ? `Write the name of the ${command.name} behind it: /${command.name} NAME` : "";
}

/** @param {import("../transcript/room.js").Room} room */
async function status(room) {
  const row = room.row ?? (await get(room.path)); // who is quick asks before the list has come
  notify(`${row.agent}${row.model ? `, ${row.model}` : ""}; ${row.turn_count} turns, ${row.message_count} messages, ${row.queued_turns} queued; folder ${row.workspace}${row.mcp_servers?.length ? `; tools of ${row.mcp_servers.join(", ")}` : ""}. ${retentionWords(row)}`);
}

/** @param {import("../transcript/room.js").Room} room */
async function usage(room) {
  const found = await get(`${room.path}/usage`);
  const part = (/** @type {any} */ one) => `${brief(one.input_tokens)} in, ${brief(one.output_tokens)} out${one.cost_usd ? `, $${one.cost_usd.toFixed(3)}` : ""}`;
  notify(`Reported: ${part(found.reported)}. Estimated: ${part(found.estimated)}. They are not to be added.`);
}

/** @param {import("../transcript/room.js").Room} room @param {string} what @param {string} text */
async function history(room, what, text) {
  if (await ask({ title: `${what[0].toUpperCase()}${what.slice(1)} the session?`, text, yes: "Do it" })) await post(`${room.path}/${what}`);
}

/** @param {import("../transcript/room.js").Room} room @param {string} words */
function download(room, words) {
  const element = document.createElement("a");
  const format = ["md", "html"].find((one) => words.startsWith(one[0])) ?? "json";
  element.href = address(`${room.path}/export`, { format });
  element.download = `${(room.row?.title || "session").replace(/[^\p{L}\p{N} ._-]/gu, "_").slice(0, 60)}.${format}`;
  element.click();
}

/** What may be meant by what is typed: ours first, then the agent's own; behind /agent, the agents that are here.
 * @param {string} text @param {any[]} own @param {any[]} agents @returns {Command[]} */
export function suggest(text, own, agents) {
  const agent = /^\/agent +(\S*)$/.exec(text);
  if (agent) {
    const fit = agents.filter((one) => one.installed && one.name.startsWith(agent[1]));
    return fit.map((one) => ({ name: `agent ${one.name}`, about: String(one.title || "") })).slice(0, 12);
  }
  const found = /^\/([\w-]*)$/.exec(text);
  if (!found) return [];
  const known = new Set(COMMANDS.map((command) => command.name));
  const others = own.filter((one) => typeof one?.name === "string" && !known.has(one.name)).map((one) => ({ name: one.name, about: String(one.description || "") }));
  return [...COMMANDS, ...others].filter((command) => command.name.startsWith(found[1])).slice(0, 12);
}

/** Ours, if the text is one. @param {string} text @returns {{command: Command, words: string}|null} */
export function findCommand(text) {
  const found = /^\/(\w+)(?:\s+([\s\S]*))?$/.exec(text.trim());
  const command = found && COMMANDS.find((one) => one.name === found[1]);
  return command ? { command, words: (found[2] || "").trim() } : null;
}
