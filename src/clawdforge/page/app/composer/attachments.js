// @ts-check
// Files that go along with a prompt: chosen, pasted or dropped, sent at once, shown until they are used.
import { html, signal } from "../lib.js";
import { call, remove } from "../api/client.js";
import { notify } from "../store.js";
import { Icon } from "../shell/icons.js";
import { rememberName } from "../transcript/file_names.js";

/** @typedef {{id: number, name: string, token: string|null}} Attachment */

let lastId = 0;

export class Attachments {
  constructor() {
    this.list = signal(/** @type {Attachment[]} */ ([]));
  }

  get tokens() {
    return this.list.value.map((one) => one.token).filter((token) => token !== null);
  }

  /** Whether one is still on its way. */
  get busy() {
    return this.list.value.some((one) => one.token === null);
  }

  /** @param {Iterable<File>} files */
  async add(files) {
    await Promise.all([...files].map((file) => this.send(file)));
  }

  /** @param {File} file */
  async send(file) {
    const id = ++lastId;
    const name = file.name || "pasted.png";
    this.list.value = [...this.list.value, { id, name, token: null }];
    const form = new FormData();
    form.append("file", file, name);
    try {
      const reply = await call("POST", "/files", { form });
      rememberName(reply.file_token, name);
      this.list.value = this.list.value.map((one) => (one.id === id ? { ...one, token: reply.file_token } : one));
    } catch (error) {
      this.list.value = this.list.value.filter((one) => one.id !== id);
      notify(`${name} was not attached. ${/** @type {Error} */ (error).message}`, "bad");
    }
  }

  /** @param {Attachment} one */
  drop(one) {
    this.list.value = this.list.value.filter((other) => other !== one);
    if (one.token) remove(`/files/${encodeURIComponent(one.token)}`).catch(() => null);
  }

  clear() {
    this.list.value = [];
  }
}

/** @param {{attachments: Attachments}} props */
export function AttachmentList({ attachments }) {
  const list = attachments.list.value;
  if (!list.length) return null;
  return html`<ul class="attached" aria-label="Attached files">
    ${list.map(
      (one) => html`<li class="chip" key=${one.id}><${Icon} name="file" /><span class="cut">${one.name}</span>${one.token ? "" : html`<span class="quiet">sending …</span>`}
        <button type="button" aria-label=${`Do not attach ${one.name}`} onClick=${() => attachments.drop(one)}><${Icon} name="close" /></button></li>`,
    )}
  </ul>`;
}
