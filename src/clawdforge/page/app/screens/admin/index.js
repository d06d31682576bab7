// @ts-check
// What the operator sees: one section at a time, #/admin/apps, #/admin/audit and so on.
import { html } from "../../lib.js";
import { me } from "../../store.js";
import { link } from "../../shell/router.js";
import { Agents } from "./agents.js";
import { Apps } from "./apps.js";
import { Audit } from "./audit.js";
import { Budgets } from "./budgets.js";
import { Health } from "./health.js";
import { Live } from "./live.js";
import { Tokens } from "./tokens.js";

const SECTIONS = [
  { name: "health", title: "Health", view: Health },
  { name: "apps", title: "Apps", view: Apps },
  { name: "tokens", title: "Tokens", view: Tokens },
  { name: "budgets", title: "Budgets", view: Budgets },
  { name: "agents", title: "Agents", view: Agents },
  { name: "live", title: "Live", view: Live },
  { name: "audit", title: "Audit", view: Audit },
];

/** @param {{route: import("../../store.js").Route}} props */
export default function Admin({ route }) {
  const section = SECTIONS.find((one) => one.name === route.parts[0]) ?? SECTIONS[0];
  if (!me.value?.operator) return html`<${NotHere} />`;
  return html`<header class="head admin-head">
      <h1 class="out-of-sight">Admin</h1>
      <nav class="tabs" aria-label="Sections">
        ${SECTIONS.map(
          (one) =>
            html`<a class="tab" href=${link("admin", one.name)} aria-current=${one === section ? "page" : null}>${one.title}</a>`,
        )}
      </nav>
    </header>
    <div class="scroll" tabindex="0">
      <div class="page stack" key=${section.name}><${section.view} route=${route} /></div>
    </div>`;
}

function NotHere() {
  return html`<div class="empty">
    <h2>This is for the operator</h2>
    <p>Log in with the operator’s token to see it. That login lasts an hour.</p>
  </div>`;
}
