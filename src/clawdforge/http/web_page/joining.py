"""Joins the page's modules into one, so that a first visit is one file and not a hundred.

Each module becomes a function that is called when it is first needed and gives what it exports. That is what
a browser does with modules but for three things, which are refused: circles, exports that change, and forms
of import and export that stand below.
"""

import posixpath
import re
from collections.abc import Mapping
from typing import Final

IMPORTS: Final = r"import(?<![^\n;}]import)"
EXPORTS: Final = r"export(?<![^\n;}]export)"
"""At the beginning of a line, or behind a statement in what others have packed. The word comes first, since
that is what is looked for fast."""

PATH: Final = r"""["'](?P<path>\.[^"']+)["']"""
IMPORT: Final = re.compile(
    IMPORTS + r"\s*(?:(?P<all>\*\s*as\s+[\w$]+|[\w$]+|\{[^}]*\})\s*from\s*)?" + PATH + ";?"
)
LIST: Final = re.compile(EXPORTS + r"\s*\{(?P<names>[^}]*)\}(?:\s*from\s*" + PATH + ")?;?")
NAMED: Final = re.compile(
    EXPORTS + r"\s+(?P<default>default\s+)?(?P<kind>const|class|(?:async\s+)?function\*?)\s+(?P<name>[\w$]+)"
)
DEFAULT: Final = re.compile(EXPORTS + r"\s+default\b")
LATER: Final = re.compile(r"import\(\"(\.[^\"]+)\"\)(?!\.[A-Z])")
"""Fetched when it is needed. With a name behind it, it is a type in a comment."""

LEFT: Final = re.compile(rf"{IMPORTS}\b(?!\()|{EXPORTS}\b|import\((?!\"[^\"]+\"\)\.[A-Z])")
HERE: Final = "import.meta.url"
BLANK: Final = re.compile(r"\n\s*\n+")
ONCE: Final = "const __once = (make) => { let made; return () => (made ??= make()); };\n"


class NotJoined(ValueError):
    """A module is written in a way that is not known here."""


def join_modules(sources: Mapping[str, str], first: str, place: str) -> str:
    """One module that does what `first` does, with everything that it asks for, to be served as `place`."""
    order: list[str] = []
    bodies: dict[str, str] = {}
    _collect(sources, first, place, order, bodies, ())
    parts = [f"const {_name(order, name)} = __once(() => {{\n{bodies[name]}\n}});\n" for name in order]
    return ONCE + "".join(parts) + f"{_name(order, first)}();\n"


def _collect(
    sources: Mapping[str, str],
    name: str,
    place: str,
    order: list[str],
    bodies: dict[str, str],
    above: tuple[str, ...],
) -> None:
    if name in above:
        raise NotJoined(f"modules import each other in a circle: {' → '.join((*above, name))}")
    if name in order:
        return
    if name not in sources:
        raise NotJoined(f"{above[-1] if above else 'the page'} imports {name}, which is not there")
    order.append(name)
    text = sources[name]
    for found in (*IMPORT.finditer(text), *LIST.finditer(text)):
        if found["path"]:
            _collect(sources, _resolve(name, found["path"]), place, order, bodies, (*above, name))
    for path in LATER.findall(text):
        _collect(sources, _resolve(name, path), place, order, bodies, ())
    bodies[name] = _wrap(text, name, place, order)


def _wrap(text: str, name: str, place: str, order: list[str]) -> str:
    """The module's own code, its imports as what other functions give, its exports as what it returns."""
    gives: list[str] = []

    def call(path: str) -> str:
        return f"{_name(order, _resolve(name, path))}()"

    def bring(found: re.Match[str]) -> str:
        what = found["all"]
        if what is None:
            return f"{call(found['path'])};"
        if what.startswith("{"):
            what = re.sub(r"\s+as\s+", ": ", what)
        elif what.startswith("*"):
            what = what.split()[-1]
        else:
            what = f"{{ default: {what} }}"
        return f"const {what} = {call(found['path'])};"

    def give_list(found: re.Match[str]) -> str:
        source = f"{call(found['path'])}." if found["path"] else ""
        for one in filter(None, (part.strip() for part in found["names"].split(","))):
            inner, _, outer = one.partition(" as ")
            gives.append(f"{outer.strip() or inner}: {source}{inner}")
        return ""

    def give_named(found: re.Match[str]) -> str:
        gives.append(f"default: {found['name']}" if found["default"] else found["name"])
        return f"{found['kind']} {found['name']}"

    text = IMPORT.sub(bring, text)
    text = NAMED.sub(give_named, LIST.sub(give_list, text))
    text, count = DEFAULT.subn("const __default =", text)
    gives += ["default: __default"] * count
    text = LATER.sub(lambda found: f"Promise.resolve().then({call(found[1])[:-2]})", text)
    if left := LEFT.search(text):
        raise NotJoined(f"{name}: {text[left.start() : left.start() + 60]!r} is not known here")
    back = posixpath.relpath(name, posixpath.dirname(place) or ".")
    text = text.replace(HERE, f'new URL("{back}", {HERE}).href')
    return f"{BLANK.sub(chr(10), text).strip()}\nreturn {{ {', '.join(gives)} }};"


def _resolve(name: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), path))


def _name(order: list[str], name: str) -> str:
    return f"__m{order.index(name)}"
