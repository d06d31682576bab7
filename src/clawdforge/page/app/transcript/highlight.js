// @ts-check
// Colours for code: comments, texts, numbers, words of the language, names that are called. One pass, no markup.

const WORDS = new Set(
  ("abstract and any as assert async await auto begin bool boolean break byte case catch chan char class const continue " +
    "declare def default defer del delete do done double elif else end ensure enum esac except export extends extern f32 f64 " +
    "fallthrough false False fi final finally float fn for foreach from func function global go goto i32 i64 if impl implements " +
    "import in inline instanceof int interface is lambda let local long loop map match mod module mut namespace new next nil " +
    "None not null nullptr of or override package pass private protected pub public raise range readonly record ref require " +
    "rescue return select self Self short signed sizeof static string struct super switch template then this throw throws trait " +
    "true True try type typedef typeof u8 u32 u64 undefined union unless unsafe unsigned until use using usize val var virtual " +
    "void volatile when where while with yield select insert update delete from where join create table values set group order by").split(" "),
);
const HASH = new Set(["py", "python", "sh", "bash", "shell", "zsh", "rb", "ruby", "yaml", "yml", "toml", "r", "perl", "makefile", "dockerfile", "conf", "ini"]);
const DASH = new Set(["sql", "lua", "hs", "haskell", "ada"]);
const NONE = new Set(["text", "txt", "plain", "plaintext", "log", "console", "output", "markdown", "md", ""]);

const STRINGS = String.raw`"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?|` + "`(?:\\\\[\\s\\S]|[^`\\\\])*`?";
const REST = String.raw`|(\b0[xb][\da-fA-F_]+\b|\b\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?\b)|([A-Za-z_$][\w$]*)(?=(\s*\()?)`;

/** @type {Record<string, string>} */
const NOTES = {
  hash: String.raw`(#.*)|(` + STRINGS + ")" + REST,
  dash: String.raw`(--.*)|(` + STRINGS + ")" + REST,
  slash: String.raw`(\/\/.*|\/\*[\s\S]*?(?:\*\/|$))|(` + STRINGS + ")" + REST,
};

/** @param {string} kind @param {string} text */
function span(kind, text) {
  const element = document.createElement("span");
  element.className = `c-${kind}`;
  element.textContent = text;
  return element;
}

/** @param {string} text @param {string} language @returns {DocumentFragment} */
export function colour(text, language) {
  const nodes = document.createDocumentFragment();
  const name = language.toLowerCase();
  if (name === "diff" || name === "patch") return colourDiff(text, nodes);
  if (NONE.has(name)) {
    nodes.append(text);
    return nodes;
  }
  const pattern = new RegExp(NOTES[HASH.has(name) ? "hash" : DASH.has(name) ? "dash" : "slash"], "g");
  let from = 0;
  for (const found of text.matchAll(pattern)) {
    const [all, note, string, number, word, called] = found;
    const kind = note ? "note" : string ? "text" : number ? "number" : WORDS.has(word) ? "key" : called !== undefined ? "name" : "";
    if (!kind) continue;
    const at = /** @type {number} */ (found.index);
    if (at > from) nodes.append(text.slice(from, at));
    nodes.append(span(kind, all));
    from = at + all.length;
  }
  if (from < text.length) nodes.append(text.slice(from));
  return nodes;
}

/** @param {string} text @param {DocumentFragment} nodes */
function colourDiff(text, nodes) {
  for (const line of text.split(/(?<=\n)/)) {
    const kind = /^(?:\+\+\+|---|@@|diff |index )/.test(line) ? "note" : line[0] === "+" ? "added" : line[0] === "-" ? "removed" : "";
    nodes.append(kind ? span(kind, line) : line);
  }
  return nodes;
}
