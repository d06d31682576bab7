// @ts-check
// What the operator's sections share: a section with a name, and requests whose failure is said.
import { html } from "../../lib.js";
import { notify } from "../../store.js";

/** @param {{title: string, children?: any, actions?: any}} props */
export function Section({ title, actions, children }) {
  return html`<section class="stack tight" aria-label=${title}>
    <div class="row"><h2 class="grow">${title}</h2>${actions}</div>
    ${children}
  </section>`;
}

/** @param {() => Promise<any>} work @param {string} [done] what to say afterwards */
export async function attempt(work, done) {
  try {
    const found = await work();
    if (done) notify(done);
    return found ?? true;
  } catch (/** @type {any} */ failure) {
    notify(failure.message, "bad");
    return null;
  }
}

/** What a form's fields say; empty ones are left out, numbers are numbers. @param {SubmitEvent} event @param {string[]} numbers */
export function readForm(event, numbers = []) {
  event.preventDefault();
  const found = /** @type {Record<string, any>} */ ({});
  for (const [name, value] of new FormData(/** @type {HTMLFormElement} */ (event.target))) {
    const text = String(value).trim();
    if (text) found[name] = numbers.includes(name) ? Number(text) : text;
  }
  return found;
}
