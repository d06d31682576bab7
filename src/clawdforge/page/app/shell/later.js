// @ts-check
// A part of the page that begins to live when it is first shown.
import { html, useEffect, useState } from "../lib.js";

/** @param {{load: () => Promise<any>, name: string, given: any}} props */
export function Later({ load, name, given }) {
  const [found, setFound] = useState(/** @type {{name: string, view: any}|null} */ (null));
  useEffect(() => {
    let wanted = true;
    load().then((module) => wanted && setFound({ name, view: module.default }));
    return () => {
      wanted = false;
    };
  }, [name]);
  return found?.name === name ? html`<${found.view} ...${given} />` : html`<div class="grow" aria-busy="true"></div>`;
}
