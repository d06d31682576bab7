// @ts-check
// The line at the bottom: how the stream stands, in words.
import { html } from "../lib.js";
import { status } from "../store.js";

const WORRY = { waiting: "warn", offline: "warn", gone: "bad" };

export function StatusLine() {
  const { state, text } = status.value;
  const worry = /** @type {Record<string, string>} */ (WORRY)[state] || "";
  return html`<div class=${`status ${worry ? "trouble" : ""}`} role="status" data-state=${state}>
    <span class=${worry}>${text}</span>
  </div>`;
}
