// @ts-check
// The one door to what others wrote: elements, state and hooks.
import { Component, Fragment, h, render } from "../vendor/preact.js";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact.hooks.js";
import { batch, computed, effect, signal, untracked, useComputed, useSignal } from "../vendor/signals.js";
import htm from "../vendor/htm.js";

/** Markup as a template: html`<p class="x">${text}</p>`. Text is always text, never markup. */
export const html = htm.bind(h);

export { Component, Fragment, h, render };
export { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState };
export { batch, computed, effect, signal, untracked, useComputed, useSignal };
