// @ts-check
// Who is here: asks, logs in by a token or by a one-time code of a link, logs out.
import { batch } from "../lib.js";
import { Failure, call, get, post } from "../api/client.js";
import { me, notify, sessionOrder, sessions, status } from "../store.js";
import { go, link } from "../shell/router.js";

const AGAIN_MS = 1000;

/** What a link `#code=…&session=…` brought. It leaves the address at once, so that nobody copies it. */
export function takeCode() {
  const found = new URLSearchParams(location.hash.replace(/^#/, ""));
  const code = found.get("code");
  if (!code) return null;
  const session = found.get("session");
  history.replaceState(null, "", location.pathname + (session ? link("s", session) : ""));
  return code;
}

/** Find out who is logged in; with a code, log in by it first. @param {string|null} code */
export async function begin(code) {
  if (code) {
    try {
      await call("POST", "/login", { body: { code } });
    } catch (error) {
      const why = error instanceof Failure ? error.message : "";
      notify(`The link did not log you in. ${why} A link works once, for a minute.`, "bad");
    }
  }
  await whoAmI();
}

/** Ask the server who this is. A server that cannot say yet is asked for something that needs a login. */
export async function whoAmI() {
  try {
    const reply = await get("/login");
    const known = reply.app_name || reply.operator;
    me.value = known ? reply : null;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    if (error.status === 404 || error.status === 405) await probe();
    else if (error.status === 0) await askLater();
    else me.value = null;
  }
}

/** Nobody knows who this is as long as the server does not answer. */
async function askLater() {
  if (me.value === undefined) status.value = { state: "waiting", text: "The server cannot be reached. The page tries again by itself." };
  await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  await whoAmI();
}

async function probe() {
  try {
    await get("/limits");
    me.value = { app_name: "", scopes: ["read", "prompt", "approve"], operator: false, version: "" };
  } catch {
    me.value = null;
  }
}

/** @param {string} token */
export async function logIn(token) {
  await call("POST", "/login", { body: { token } });
  await whoAmI();
  if (!me.value) throw new Failure(`The login worked, but the browser does not send it back. ${HTTPS}`, 0, "no_cookie");
}

export const HTTPS =
  "Browsers keep a login only over HTTPS or on this machine itself: open the page by https://, or by http://127.0.0.1.";

/** Whoever wants every login ended has to know if they were not. @param {{everywhere?: boolean}} [how] */
export async function logOut(how = {}) {
  try {
    await post("/logout", how.everywhere ? { everywhere: true } : undefined);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    if (how.everywhere && error.status !== 401) return notify(`You are still logged in everywhere. ${error.message}`, "bad");
  }
  batch(() => {
    me.value = null;
    sessions.value = new Map();
    sessionOrder.value = [];
  });
  go(link(""));
}
