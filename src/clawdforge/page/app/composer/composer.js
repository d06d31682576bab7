// @ts-check
// Where a prompt is written: draft, commands, files, and what happens to it while the agent is at work.
import { html, useEffect, useMemo, useRef, useState } from "../lib.js";
import { Failure, get, newKey, post } from "../api/client.js";
import { notify } from "../store.js";
import { Icon } from "../shell/icons.js";
import { stop } from "../transcript/turn_actions.js";
import { AttachmentList, Attachments } from "./attachments.js";
import { findCommand, lacking, suggest } from "./commands.js";
import { draftsChanged, getDraft, keepDraft } from "./drafts.js";
import { Queue } from "./queue.js";

const BUSY = [
  ["queue", "Queue", "It waits until the present turn has ended."],
  ["steer", "Steer", "It is handed to the agent at once, if the agent can take it; else it waits."],
  ["interrupt", "Interrupt", "The present turn ends here, its answer stays, and this one begins."],
];

/** The commands that fit. @param {{found: import("./commands.js").Command[], chosen: number, take: (at: number) => void}} props */
function Suggestions({ found, chosen, take }) {
  const list = useRef(/** @type {HTMLElement|null} */ (null));
  useEffect(() => void list.current?.children[chosen]?.scrollIntoView({ block: "nearest" }), [chosen]);
  if (!found.length) return null;
  return html`<ul class="suggestions" ref=${list} role="listbox" id="suggestions" aria-label="Commands">
    ${found.map(
      (one, at) => html`<li role="option" id=${`suggestion-${at}`} key=${one.name} aria-selected=${String(at === chosen)} onMouseDown=${(/** @type {Event} */ event) => (event.preventDefault(), take(at))}>
        <span class="mono">/${one.name}${one.takes ? ` ${one.takes}` : ""}</span><span class="quiet cut">${one.about}</span>
      </li>`,
    )}
  </ul>`;
}

/** @param {HTMLTextAreaElement} area */
function fit(area) {
  area.style.height = "auto";
  area.style.height = `${Math.min(area.scrollHeight + 2, innerHeight * 0.4)}px`;
}

/** @param {{room: import("../transcript/room.js").Room}} props */
export function Composer({ room }) {
  const area = useRef(/** @type {HTMLTextAreaElement|null} */ (null));
  const picker = useRef(/** @type {HTMLInputElement|null} */ (null));
  const attachments = useMemo(() => new Attachments(), [room.id]);
  const [text, setText] = useState(() => getDraft(room.id));
  const [chosen, setChosen] = useState(0);
  const [busy, setBusy] = useState("queue");
  const [sending, setSending] = useState(false);
  const [dropping, setDropping] = useState(false);
  const key = useRef({ text: "", key: "" });
  const [agents, setAgents] = useState(/** @type {any[]} */ ([]));
  const found = suggest(text, room.commands.value, agents);
  const naming = text.startsWith("/agent ");
  const running = room.running.value !== null;
  const ended = room.row ? !room.row.live : false;
  useEffect(() => void (draftsChanged.value && setText(getDraft(room.id))), [draftsChanged.value]);
  useEffect(() => void (naming && get("/agents").then((reply) => setAgents(reply.agents), () => null)), [naming]);
  useEffect(() => void (area.current && fit(area.current)), [text]);
  useEffect(() => void (!matchMedia("(pointer: coarse)").matches && area.current?.focus()), []);

  const type = (/** @type {string} */ value) => {
    setText(value);
    setChosen(0);
    keepDraft(room.id, value);
  };
  const take = (/** @type {number} */ at) => (type(`/${found[at].name} `), area.current?.focus());
  const send = async () => {
    const words = text.trim();
    if (!words || sending) return;
    if (attachments.busy) return notify("A file is still on its way; send again in a moment.");
    const ours = findCommand(words);
    const missing = ours && lacking(ours);
    if (missing) return notify(missing);
    setSending(true);
    try {
      if (ours) await ours.command.run?.(room, ours.words);
      else {
        // The same words after a failure are the same request: the server takes them once.
        if (key.current.text !== text) key.current = { text, key: newKey() };
        await post(`${room.path}/turns`, { prompt: text, files: attachments.tokens.length ? attachments.tokens : null, if_busy: running ? busy : "queue" }, key.current.key);
        attachments.clear();
        room.sent();
      }
      key.current = { text: "", key: "" };
      const now = getDraft(room.id); // somebody may have typed on meanwhile
      type(now.startsWith(text) ? now.slice(text.length).trimStart() : now);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      notify(error.message, "bad");
    }
    setSending(false);
    area.current?.focus();
  };
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    if (event.isComposing) return;
    if (found.length && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      return setChosen((chosen + (event.key === "ArrowDown" ? 1 : found.length - 1)) % found.length);
    }
    if (found.length && (event.key === "Tab" || (event.key === "Enter" && text !== `/${found[chosen].name}`))) return event.preventDefault(), take(chosen);
    if (event.key === "Enter" && !event.shiftKey && !event.altKey && !matchMedia("(pointer: coarse)").matches) return event.preventDefault(), void send();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) return event.preventDefault(), void send();
    if (event.key === "Escape" && running && !text) stop(room);
  };
  const onPaste = (/** @type {ClipboardEvent} */ event) => {
    if (!event.clipboardData?.files.length) return;
    event.preventDefault();
    attachments.add(event.clipboardData.files);
  };
  const onDrop = (/** @type {DragEvent} */ event) => {
    event.preventDefault();
    setDropping(false);
    if (event.dataTransfer?.files.length) attachments.add(event.dataTransfer.files);
  };
  const about = BUSY.find((one) => one[0] === busy)?.[2];
  return html`<div class="composer">
    <${Queue} room=${room} />
    <form class=${`box ${dropping ? "dropping" : ""}`} onSubmit=${(/** @type {Event} */ event) => (event.preventDefault(), send())}
      onDragOver=${(/** @type {DragEvent} */ event) => (event.preventDefault(), setDropping(true))} onDragLeave=${() => setDropping(false)} onDrop=${onDrop}>
      <${Suggestions} found=${found} chosen=${chosen} take=${take} />
      <${AttachmentList} attachments=${attachments} />
      <textarea ref=${area} rows="1" aria-label="Prompt" placeholder=${ended ? "This session is closed; a prompt opens it again" : running ? "Write what comes next" : "Ask or tell; / for commands"} value=${text}
        aria-haspopup="listbox" aria-controls=${found.length ? "suggestions" : null} aria-autocomplete="list" aria-activedescendant=${found.length ? `suggestion-${chosen}` : null}
        onInput=${(/** @type {any} */ event) => type(event.target.value)} onKeyDown=${onKey} onPaste=${onPaste}></textarea>
      <div class="row tools">
        <input type="file" multiple hidden ref=${picker} onChange=${(/** @type {any} */ event) => (attachments.add([...event.target.files]), (event.target.value = ""))} />
        <button type="button" class="icon-button" aria-label="Attach files" title="Attach files" onClick=${() => picker.current?.click()}><${Icon} name="attach" /></button>
        <span class="grow"></span>
        ${running &&
        html`<label class="row busy" title=${about}><span class="out-of-sight">While the agent is at work</span>
          <select value=${busy} onChange=${(/** @type {any} */ event) => setBusy(event.target.value)}>${BUSY.map((one) => html`<option value=${one[0]} key=${one[0]} selected=${one[0] === busy}>${one[1]}</option>`)}</select></label>`}
        ${running && html`<button type="button" class="icon-button stop" aria-label="Stop; the answer so far is kept" title="Stop (Escape)" onClick=${() => stop(room)}><${Icon} name="stop" /></button>`}
        <button class="icon-button send" aria-label="Send" title="Send (Enter)" disabled=${!text.trim() || sending}><${Icon} name="send" /></button>
      </div>
    </form>
  </div>`;
}
