// @ts-check
// What an app may have of the server and what it has now: names, words and a table.
import { html } from "../lib.js";
import { sayBytes, sayCount } from "./words.js";

/** By the name of a limit: its title, and where what is used of it stands. */
export const LIMITS = /** @type {Record<string, {title: string, used: string}>} */ ({
  max_sessions: { title: "Sessions", used: "sessions" },
  max_turns_in_flight: { title: "Turns at the same time", used: "turns_in_flight" },
  max_bytes: { title: "Bytes stored", used: "bytes_stored" },
  max_requests_per_sec: { title: "Requests a second", used: "" },
  max_open_requests: { title: "Requests at the same time", used: "open_requests" },
  max_readers: { title: "Open streams", used: "readers" },
  max_agents: { title: "Live agents", used: "agents" },
});

/** Of the server's own setting for sessions, only those count that are not kept. @param {string} name @param {string} source */
const usedOf = (name, source) => (name === "max_sessions" && source !== "own" ? "ttl_sessions" : LIMITS[name].used);

/** @param {string} name @param {number|null|undefined} value */
const say = (name, value) => (name === "max_bytes" ? sayBytes(value) : sayCount(value));

/**
 * How much of a limit is used, as `3 of 500`.
 * @param {string} name @param {{allowed: any, sources: any, used: any}} app
 */
export function sayUse(name, { allowed, sources, used }) {
  const most = allowed[name] == null ? "any number" : say(name, allowed[name]);
  const key = usedOf(name, sources[name]);
  return key ? `${say(name, used[key])} of ${most}` : most;
}

/** @param {{limits: any}} props the answer of `GET /limits` */
export function OwnLimits({ limits }) {
  const app = { allowed: limits, sources: limits.sources ?? {}, used: limits };
  return html`<section class="stack tight" aria-label="Limits">
    <h2>Limits</h2>
    <div class="table-scroll" tabindex="0" role="region" aria-label="Table of limits">
      <table class="numbers stacks">
        <thead><tr><th scope="col">Limit</th><th scope="col">Used of what is allowed</th><th scope="col">Set by</th></tr></thead>
        <tbody>
          ${Object.entries(LIMITS).map(
            ([name, { title }]) => html`<tr key=${name}>
              <th scope="row">${title}</th>
              <td data-name="Used">${sayUse(name, app)}</td>
              <td data-name="Set by">${app.sources[name] === "own" ? "the operator, for this app" : "the server’s own setting"}</td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
  </section>`;
}
