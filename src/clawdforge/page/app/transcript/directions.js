// @ts-check
// Signs that turn the direction of what follows are written out: text must not read otherwise than it runs.

const TURNS = /[\u202a-\u202e\u2066-\u2069]/g;

/** @param {string} text */
export const showDirections = (text) => text.replace(TURNS, (sign) => `⟨U+${sign.charCodeAt(0).toString(16).toUpperCase()}⟩`);
