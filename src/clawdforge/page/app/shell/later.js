// @ts-check
// A part of the page that is fetched when it is first shown, and again as long as the server cannot be reached.
import { html, useEffect, useState } from "../lib.js";
import { status } from "../store.js";

const AGAIN_MS = 1500;

/** @param {{load: () => Promise<any>, name: string, given: any}} props */
export function Later({ load, name, given }) {
  const [found, setFound] = useState(/** @type {{name: string, view: any}|null} */ (null));
  const [tries, setTries] = useState({ name, count: 0 });
  const count = tries.name === name ? tries.count : 0;
  useEffect(() => {
    let wanted = true;
    /** @type {any} */
    let timer;
    load().then(
      (module) => wanted && setFound({ name, view: module.default }),
      () => wanted && (timer = setTimeout(() => setTries({ name, count: count + 1 }), count ? AGAIN_MS : 0)),
    );
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [name, count]);
  if (found?.name === name) return html`<${found.view} ...${given} />`;
  return count ? html`<${Missing} />` : html`<div class="grow" aria-busy="true"></div>`;
}

/** Some browsers remember that a file could not be fetched, and have to be told to look again. */
function Missing() {
  return html`<div class="empty" role="status">
    <h2>This part of the page is not here yet</h2>
    <p>The server could not be reached. It is tried again by itself.</p>
    ${status.value.state === "live" && html`<button class="button" onClick=${() => location.reload()}>Reload the page</button>`}
  </div>`;
}
