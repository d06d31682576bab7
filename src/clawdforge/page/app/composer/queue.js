// @ts-check
// Prompts that wait for their turn: change, order, let one interrupt what runs, take out. None is handed to an agent that is at
// work: no agent takes one then, so to steer means to be next.
import { html } from "../lib.js";
import { Failure, patch, post, remove } from "../api/client.js";
import { ask } from "../shell/dialog.js";
import { Icon } from "../shell/icons.js";
import { Menu } from "../shell/menu.js";
import { notify } from "../store.js";
import { addToDraft } from "./drafts.js";

/** @param {import("../transcript/room.js").Room} room @param {any} turn */
const pathOf = (room, turn) => `${room.path}/turns/${turn.turn_index}`;

/** @param {() => Promise<any>} work */
async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    notify(error.status === 405 ? "This server cannot change the queue yet; take the prompt out and send it again." : error.message, "bad");
    return null;
  }
}

/** @param {import("../transcript/room.js").Room} room @param {any} turn */
async function takeOut(room, turn) {
  if (await attempt(() => remove(pathOf(room, turn)))) room.queue.value = room.queue.value.filter((one) => one.turn_index !== turn.turn_index);
}

/** @param {import("../transcript/room.js").Room} room @param {any} turn */
async function change(room, turn) {
  const prompt = await ask({ title: "Change the prompt", name: "Prompt", value: turn.prompt, yes: "Change", long: true });
  if (typeof prompt !== "string" || !prompt || prompt === turn.prompt) return;
  const changed = await attempt(() => patch(pathOf(room, turn), { prompt, expected_prompt: turn.prompt }));
  if (!changed) return addToDraft(room.id, prompt); // it runs as it was, or is gone: the new words are not lost
  room.queue.value = room.queue.value.map((one) => (one.turn_index === turn.turn_index ? { ...one, prompt } : one));
}

/** @param {import("../transcript/room.js").Room} room @param {any} turn @param {number} position */
async function move(room, turn, position) {
  if (!(await attempt(() => patch(pathOf(room, turn), { position })))) return;
  const rest = room.queue.value.filter((one) => one.turn_index !== turn.turn_index);
  room.queue.value = [...rest.slice(0, position), turn, ...rest.slice(position)];
}

/** It begins now: first in the queue, and then the present turn ends, by its number: what has begun meanwhile goes on. @param {import("../transcript/room.js").Room} room @param {any} turn */
async function interrupt(room, turn) {
  const present = room.running.value;
  if (room.queue.value[0]?.turn_index !== turn.turn_index && !(await attempt(() => patch(pathOf(room, turn), { position: 0 })))) return;
  await attempt(() => post(`${room.path}/cancel`, { turn: present }));
}

/** @param {{room: import("../transcript/room.js").Room}} props */
export function Queue({ room }) {
  const queue = room.queue.value;
  if (!queue.length) return null;
  const paused = room.row?.paused;
  return html`<section class="queue" aria-label="Queue">
    <h2 class="small quiet">${paused ? "Paused by the operator. " : ""}${queue.length === 1 ? "One prompt waits" : `${queue.length} prompts wait`}</h2>
    <ol>${queue.map(
      (turn, at) => html`<li key=${turn.turn_index} class="row">
        <span class="grow cut">${turn.prompt}</span>
        <button class="icon-button" aria-label="Change this prompt" title="Change this prompt" onClick=${() => change(room, turn)}><${Icon} name="edit" /></button>
        <button class="icon-button" aria-label="Sooner" title="Sooner" disabled=${at === 0} onClick=${() => move(room, turn, at - 1)}><${Icon} name="up" /></button>
        ${room.running.value !== null && html`<${Menu} label="Sooner or at once" icon="now" items=${[
          { name: "Steer: it comes next", icon: "move", disabled: at === 0, run: () => move(room, turn, 0) },
          { name: "Interrupt: it begins now", icon: "stop", run: () => interrupt(room, turn) },
        ]} />`}
        <button class="icon-button" aria-label="Take this prompt out" title="Take this prompt out" onClick=${() => takeOut(room, turn)}><${Icon} name="close" /></button>
      </li>`,
    )}</ol>
  </section>`;
}
