// @ts-check
// The frame around every screen: sessions at the left, the screen, a panel at the right, tabs on a phone.
import { html, useState } from "../lib.js";
import { current, me, panelOpen, route, sessionOrder, waiting } from "../store.js";
import { SessionList } from "../sessions/list.js";
import { NewSession } from "../sessions/new.js";
import { choose } from "./dialog.js";
import { Icon } from "./icons.js";
import { Later } from "./later.js";
import { link } from "./router.js";
import { PANELS, SCREENS, findScreen } from "./screens.js";
import { StatusLine } from "./status.js";
import { logOut } from "../login/actions.js";

function switchTheme() {
  const root = document.documentElement;
  const next = root.dataset.theme === "dark" ? "light" : "dark";
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  if (next === system) localStorage.removeItem("clawdforge.theme");
  else localStorage.setItem("clawdforge.theme", next);
  dispatchEvent(new Event("clawdforge-theme"));
}

/** Log out, here or in every browser. */
async function leave() {
  const how = await choose({
    title: "Log out?",
    text: "“Everywhere” ends every login that was made with the same token, in all browsers. The token itself stays good.",
    choices: [["here", "Log out"], ["everywhere", "Log out everywhere"]],
  });
  if (how) await logOut({ everywhere: how === "everywhere" });
}

/** @param {{screen: import("./screens.js").Screen}} props */
function Place({ screen }) {
  const here = route.value.name === screen.name;
  const count = screen.count?.() || 0;
  return html`<a class="place" href=${link(screen.name)} aria-current=${here ? "page" : null}>
    <${Icon} name=${screen.icon} /><span class="grow cut">${screen.title}</span>
    ${count > 0 && html`<span class="count">${count}</span>`}
  </a>`;
}

const shown = () => SCREENS.filter((screen) => screen.place && (!screen.operator || me.value?.operator));

function Side() {
  return html`<aside class="side" aria-label="Sessions">
    <div class="brand">
      <img src=${new URL("../../icon.svg", import.meta.url).href} alt="" /><span class="grow">clawdforge</span>
    </div>
    <nav class="places" aria-label="Screens">${shown().map((screen) => html`<${Place} screen=${screen} key=${screen.name} />`)}</nav>
    <${SessionList} />
    <div class="side-foot">
      <span class="grow cut small quiet">${me.value?.app_name || (me.value?.operator ? "operator" : "")}</span>
      <button class="icon-button" aria-label="Switch between light and dark" onClick=${switchTheme}><${Icon} name="moon" /></button>
      <button class="icon-button" aria-label="Log out" onClick=${leave}><${Icon} name="leave" /></button>
    </div>
  </aside>`;
}

function PanelColumn() {
  const [name, setName] = useState(PANELS[0]?.name);
  const panel = PANELS.find((one) => one.name === name);
  if (!panel || !current.value) return null;
  return html`<aside class="panel" aria-label="About the session">
    <div class="row">
      <div class="tabs grow" role="tablist">
        ${PANELS.map(
          (one) => html`<button class="tab" role="tab" key=${one.name} aria-selected=${String(one.name === name)} onClick=${() => setName(one.name)}>
            ${one.title}
          </button>`,
        )}
      </div>
      <button class="icon-button" aria-label="Close the panel" onClick=${() => (panelOpen.value = false)}><${Icon} name="close" /></button>
    </div>
    <div class="scroll" role="tabpanel" tabindex="0" aria-label=${panel.title}>
      <${Later} load=${panel.load} name=${panel.name} given=${{ session: current.value }} />
    </div>
  </aside>`;
}

/** The four tabs of a phone. @param {{tab: string}} props */
function Tabs({ tab }) {
  const chat = current.value ? link("s", current.value.session_id) : link("");
  const one = (/** @type {string} */ name, /** @type {string} */ to, /** @type {string} */ icon, /** @type {string} */ title, count = 0) =>
    html`<a href=${to} aria-current=${tab === name ? "page" : null}>
      <${Icon} name=${icon} />${title}${count > 0 && html`<span class="count">${count}</span>`}
    </a>`;
  return html`<nav class="tabs-phone" aria-label="Tabs">
    ${one("sessions", link("sessions"), "list", "Sessions")}
    ${one("inbox", link("inbox"), "inbox", "Waiting", waiting.value.length)} ${one("chat", chat, "chat", "Chat")}
    ${one("more", link("more"), "more", "More")}
  </nav>`;
}

function More() {
  return html`<div class="scroll"><div class="page stack">
    <h1>More</h1>
    <nav class="places" aria-label="More screens">${shown().map((screen) => html`<${Place} screen=${screen} key=${screen.name} />`)}</nav>
    <div class="row">
      <button class="button" onClick=${switchTheme}><${Icon} name="moon" />Light or dark</button>
      <button class="button" onClick=${leave}><${Icon} name="leave" />Log out</button>
    </div>
  </div></div>`;
}

/** Where no session is open: the way to a new one, and to what waits. */
function Nothing() {
  const [making, setMaking] = useState(false);
  const asks = waiting.value.length;
  const isFirst = !sessionOrder.value.length;
  return html`<div class="empty grow">
    <h1>${isFirst ? "What shall we do?" : "No session is open"}</h1>
    <p>${isFirst ? "A session is a conversation with an agent, in a folder of its own." : "Choose one from the list, or start a new one."}</p>
    <div class="row">
      <button class="button main" onClick=${() => setMaking(true)}><${Icon} name="plus" />Start a session</button>
      ${asks > 0 && html`<a class="button" href=${link("inbox")}>${asks === 1 ? "One question waits" : `${asks} questions wait`}</a>`}
    </div>
    ${making && html`<${NewSession} onClose=${() => setMaking(false)} />`}
  </div>`;
}

export function Frame() {
  const name = route.value.name;
  const screen = findScreen(name);
  const tab = name === "s" ? "chat" : name === "inbox" ? "inbox" : !name || name === "sessions" ? "sessions" : "more";
  const panel = panelOpen.value && PANELS.length > 0 && current.value;
  return html`<div class=${`frame ${panel ? "" : "no-panel"}`} data-tab=${tab}>
    <${Side} />
    <main class="stage" id="stage" tabindex="-1">
      ${screen ? html`<${Later} load=${screen.load} name=${screen.name} given=${{ route: route.value }} />` : name === "more" ? html`<${More} />` : html`<${Nothing} />`}
    </main>
    ${panel && html`<${PanelColumn} />`}
    <${StatusLine} />
    <${Tabs} tab=${tab} />
  </div>`;
}
