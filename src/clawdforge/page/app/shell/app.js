// @ts-check
// The whole page: nothing while nobody knows who is here, then the login screen or the frame.
import { html } from "../lib.js";
import { me, route, status } from "../store.js";
import { Login } from "../login/login.js";
import { Frame } from "./frame.js";
import { Later } from "./later.js";
import { Notices } from "./notices.js";
import { OPEN_SCREENS } from "./screens.js";

export function App() {
  const open = OPEN_SCREENS.find((screen) => screen.name === route.value.name);
  const who = me.value;
  const view = open
    ? html`<${Later} load=${open.load} name=${open.name} given=${{ route: route.value }} />`
    : who === undefined
      ? html`<p class="empty" role="status">${status.value.text}</p>`
      : who === null
        ? html`<${Login} />`
        : html`<${Frame} />`;
  return html`${view}<${Notices} />`;
}
