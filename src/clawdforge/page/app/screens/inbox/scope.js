// @ts-check
// How far a yes reaches that is given for always.
import { showHidden } from "../words.js";

/** How far “always” reaches: ours is one session; what the agent makes of it is its own. @param {{tool: string, kind: string|null, options: any[]}} permission */
export function sayScope(permission) {
  const what = `${showHidden(permission.tool)}${permission.kind ? ` (${showHidden(permission.kind)})` : ""}`;
  const own = permission.options.find((option) => option?.kind === "allow_always")?.name;
  const agent = own ? ` The agent is told “${showHidden(own)}”, and may remember that in its own way.` : "";
  return `“Always” allows ${what} in this session from now on: all that is asked for by this very name.${agent}`;
}
