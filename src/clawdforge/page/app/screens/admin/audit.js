// @ts-check
// The audit log: who did what, and whether the log is whole.
import { get } from "../../api/client.js";
import { html, useState } from "../../lib.js";
import { link } from "../../shell/router.js";
import { Trouble, useLoad } from "../loading.js";
import { showHidden } from "../words.js";
import { Section, attempt, readForm } from "./parts.js";

const PAGE = 100;

export function Audit() {
  const [app, setApp] = useState("");
  const [after, setAfter] = useState(/** @type {number[]} */ ([0]));
  const from = after[after.length - 1];
  const { value, error, again } = useLoad(
    (signal) => get("/admin/audit", { app_name: app, after: from || undefined, limit: PAGE }, signal),
    [app, from],
  );
  const filter = (/** @type {SubmitEvent} */ event) => {
    setApp(readForm(event).app ?? "");
    setAfter([0]);
  };
  return html`<${Verify} />
    <${Section} title="Audit log">
      <form class="row" onSubmit=${filter}>
        <input class="narrow" type="search" name="app" aria-label="Only of this app" placeholder="Only of this app" value=${app} />
        <button class="button">Filter</button>
      </form>
      ${error && html`<${Trouble} error=${error} again=${again} />`}
      <div class="table-scroll" tabindex="0" role="region" aria-label="Entries">
        <table class="stacks">
          <thead><tr><th scope="col">No.</th><th scope="col">When</th><th scope="col">App</th><th scope="col">What</th><th scope="col">Details</th></tr></thead>
          <tbody>
            ${value?.entries.map(
              (/** @type {any} */ entry) => html`<tr key=${entry.number}>
                <td data-name="No.">${entry.number}</td>
                <td class="still" data-name="When">${entry.at.replace("T", " ").slice(0, 19)}</td>
                <td data-name="App">${showHidden(entry.app_name)}</td>
                <td data-name="What">${entry.session_id ? html`<a href=${link("s", entry.session_id)}>${showHidden(entry.event)}</a>` : showHidden(entry.event)}</td>
                <td class="wrap mono" data-name="Details">${sayDetails(entry.details)}</td>
              </tr>`,
            )}
          </tbody>
        </table>
      </div>
      ${value && !value.entries.length && html`<p class="quiet">No entries.</p>`}
      <div class="row">
        <button class="button" disabled=${after.length < 2} onClick=${() => setAfter(after.slice(0, -1))}>Earlier</button>
        <button class="button" disabled=${!value?.next} onClick=${() => setAfter([...after, value.next])}>Later</button>
      </div>
    <//>`;
}

/** @param {Record<string, unknown>} details */
function sayDetails(details) {
  return showHidden(
    Object.entries(details)
      .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
      .join("\n"),
  );
}

/** The head that was noted earlier shows whether the end was cut off. */
function Verify() {
  const [verdict, setVerdict] = useState(/** @type {any} */ (null));
  const [busy, setBusy] = useState(false);
  const submit = async (/** @type {SubmitEvent} */ event) => {
    const { head } = readForm(event);
    setBusy(true);
    setVerdict(await attempt(() => get("/admin/audit/verify", { head })));
    setBusy(false);
  };
  return html`<${Section} title="Is it whole?">
    <form class="row" onSubmit=${submit}>
      <input type="text" class="mono" name="head" aria-label="A head that you have noted" placeholder="A head that you have noted, if you have one" />
      <button class="button main" disabled=${busy}>Verify</button>
    </form>
    ${
      verdict &&
      html`<div class=${`verdict card ${verdict.valid ? "good" : "bad"}`} role="status">
      <strong>${verdict.valid ? `All ${verdict.entries} entries are intact.` : `Entry ${verdict.first_bad ?? "?"} does not fit.`}</strong>
      ${verdict.reason && html`<span class="wrap">${showHidden(verdict.reason)}</span>`}
      <span class="small">Head to note: <code class="wrap">${verdict.head}</code></span>
    </div>`
    }
  <//>`;
}
