// @ts-check
// A question of the agent, with everything it would do, and the buttons that answer it.
import { html, useState } from "../../lib.js";
import { post } from "../../api/client.js";
import { notify, waiting } from "../../store.js";
import { sayScope } from "../../screens/inbox/scope.js";
import { useClock } from "../../screens/loading.js";
import { sayLeft, showHidden } from "../../screens/words.js";
import { Icon } from "../../shell/icons.js";

/** @type {Record<string, string>} */
const DONE = { allow_once: "Allowed once", allow_always: "Allowed from now on", reject: "Refused", expired: "Nobody answered in time" };

/** What the agent wants, whole. @param {any} permission */
export function wanted(permission) {
  const call = permission.request?.toolCall || {};
  const input = call.rawInput;
  const command = typeof input?.command === "string" ? input.command : null;
  const rest = command ? Object.fromEntries(Object.entries(input).filter(([name]) => name !== "command")) : input;
  const more = rest && Object.keys(rest).length ? JSON.stringify(rest, null, 2) : "";
  return { title: showHidden(call.title || permission.tool || ""), command: command === null ? null : showHidden(command), more: showHidden(more) };
}

/** Answer it; the first answer wins, and who comes second is told. @param {string} session @param {any} permission @param {string} decision @param {string} [option] */
export async function decide(session, permission, decision, option) {
  try {
    const path = `/sessions/${encodeURIComponent(session)}/permissions/${encodeURIComponent(permission.permission_id)}`;
    await post(path, option ? { decision, option_id: option } : { decision });
    return true;
  } catch (error) {
    notify(/** @type {Error} */ (error).message, "bad");
    return false;
  }
}

/** @param {any} option */
const decisionOf = (option) => (String(option.kind || "").startsWith("reject") ? "reject" : option.kind === "allow_always" ? "allow_always" : "allow_once");

/** @type {Record<string, string>} */
const WORDS = { allow_once: "Allow once", allow_always: "Always in this session", reject_once: "Refuse", reject_always: "Always refuse" };

/** How long it can still be answered, where that is known. @param {{id: string}} props */
function Left({ id }) {
  const now = useClock();
  const until = waiting.value.find((one) => one.permission_id === id)?.expires_at;
  return until ? html`<span class="small quiet">expires in ${sayLeft(until, now)}</span>` : null;
}

/** @param {{row: import("../rows.js").Row, session: string}} props */
export function PermissionRow({ row, session }) {
  void row.rev.value;
  const permission = row.permission;
  const [busy, setBusy] = useState(false);
  const { title, command, more } = wanted(permission);
  const options = permission.options.length ? permission.options : [{ kind: "allow_once" }, { kind: "reject_once" }];
  const answer = async (/** @type {any} */ option) => {
    setBusy(true);
    await decide(session, permission, decisionOf(option), option.optionId);
    setBusy(false);
  };
  const open = permission.state === "pending" && row.group.end === null;
  return html`<section class=${`card permission ${open ? "open" : ""}`} aria-label="The agent asks">
    <h3><${Icon} name="admin" /><span class="grow wrap">${title}</span>${open && html`<${Left} id=${permission.permission_id} />`}</h3>
    ${command && html`<pre class="wrap terminal">${command}</pre>`} ${more && html`<pre class="wrap quiet small">${more}</pre>`}
    ${open
      ? html`<div class="buttons">
          ${options.map(
            (/** @type {any} */ option) => html`<button class=${`button ${option.kind === "allow_once" ? "main" : ""}`} disabled=${busy} key=${option.optionId || option.kind} title=${option.name} onClick=${() => answer(option)}>
              ${WORDS[option.kind] || showHidden(option.name || option.kind)}
            </button>`,
          )}
        </div>
        ${options.some((/** @type {any} */ option) => option.kind === "allow_always") && html`<p class="hint wrap">${sayScope(permission)}</p>`}`
      : html`<p class="hint">${DONE[permission.decision] || permission.decision || "No longer asked"}${permission.reason ? `: ${permission.reason}` : ""}</p>`}
  </section>`;
}
