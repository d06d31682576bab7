// @ts-check
// Where the page begins: the address, the login, the first painting.
import { effect, html, render } from "./lib.js";
import { begin, takeCode } from "./login/actions.js";
import { App } from "./shell/app.js";
import { startRouter } from "./shell/router.js";
import { findScreen } from "./shell/screens.js";
import { startNotifications } from "./screens/inbox/notifications.js";
import { watchApp } from "./shell/live.js";
import { current, me, route, waiting } from "./store.js";
import { startStreams } from "./stream/link.js";

const code = takeCode();
startRouter();
const root = /** @type {HTMLElement} */ (document.getElementById("app"));
render(html`<${App} />`, root);
findScreen(route.value.name)?.load(); // beside the question who this is
begin(code);

effect(() => {
  const count = waiting.value.length ? `(${waiting.value.length}) ` : "";
  const title = me.value && current.value ? `${current.value.title || "New session"} · ` : "";
  document.title = `${count}${title}clawdforge`;
});
startStreams();
watchApp();
startNotifications();
