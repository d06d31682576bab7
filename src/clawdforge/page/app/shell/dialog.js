// @ts-check
// A dialog that asks one thing, and gives the focus back when it closes.
import { html, render, useEffect, useRef } from "../lib.js";

/** @param {{title: string, onClose: () => void, children: any}} props */
export function Dialog({ title, onClose, children }) {
  const element = useRef(/** @type {HTMLDialogElement|null} */ (null));
  useEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    return () => before instanceof HTMLElement && before.focus();
  }, []);
  return html`<dialog ref=${element} aria-label=${title} onClose=${onClose} onCancel=${onClose}>
    ${children}
  </dialog>`;
}

/**
 * Ask for a yes, a line of text, or neither. Resolves with true, the text, or null.
 * @param {{title: string, text?: string, yes: string, bad?: boolean, value?: string, name?: string, long?: boolean}} ask
 * @returns {Promise<string|true|null>}
 */
export function ask(ask) {
  const place = document.createElement("div");
  document.body.append(place);
  return new Promise((resolve) => {
    const done = (/** @type {string|true|null} */ answer) => {
      render(null, place);
      place.remove();
      resolve(answer);
    };
    const submit = (/** @type {SubmitEvent} */ event) => {
      event.preventDefault();
      const form = /** @type {HTMLFormElement} */ (event.target);
      done(ask.value === undefined ? true : String(new FormData(form).get("value")));
    };
    render(
      html`<${Dialog} title=${ask.title} onClose=${() => done(null)}>
        <form onSubmit=${submit}>
          <h2>${ask.title}</h2>
          ${ask.text && html`<p class="wrap">${ask.text}</p>`}
          ${ask.value !== undefined &&
          html`<label class="field"><span class="name">${ask.name}</span>
            ${ask.long ? html`<textarea name="value" rows="6" defaultValue=${ask.value}></textarea>` : html`<input type="text" name="value" defaultValue=${ask.value} />`}
          </label>`}
          <div class="buttons">
            <button type="button" class="button" onClick=${() => done(null)}>Cancel</button>
            <button class=${`button ${ask.bad ? "bad" : "main"}`}>${ask.yes}</button>
          </div>
        </form>
      <//>`,
      place,
    );
  });
}

/**
 * Ask for one of a few things. Resolves with its name, or null.
 * @param {{title: string, text: string, choices: string[][]}} what
 * @returns {Promise<string|null>}
 */
export function choose(what) {
  const place = document.createElement("div");
  document.body.append(place);
  return new Promise((resolve) => {
    const done = (/** @type {string|null} */ answer) => {
      render(null, place);
      place.remove();
      resolve(answer);
    };
    render(
      html`<${Dialog} title=${what.title} onClose=${() => done(null)}>
        <form onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
          <h2>${what.title}</h2>
          <p class="wrap">${what.text}</p>
          <div class="buttons">
            <button type="button" class="button" onClick=${() => done(null)}>Cancel</button>
            ${what.choices.map(
              ([name, words], at) => html`<button type="button" class=${`button ${at ? "" : "main"}`} key=${name} onClick=${() => done(name)}>${words}</button>`,
            )}
          </div>
        </form>
      <//>`,
      place,
    );
  });
}
