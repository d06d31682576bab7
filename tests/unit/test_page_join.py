"""Modules that are joined: each runs once, when it is needed, and what cannot be joined is said."""

import json
import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from clawdforge.http.web_page.files import FIRST, INDEX, WORKER, leave_notes, read_tree
from clawdforge.http.web_page.joining import NotJoined, join_modules
from tests.needs import needs

FOLDER: Final = Path(__file__).parents[2] / "src" / "clawdforge" / "page"


GRAPH: Final = {
    "app/main.js": """import { one, two as second } from "./parts/a.js";
import * as all from "./parts/a.js";
import plain from "../vendor/plain.js";
import "../vendor/effect.js";
import { again, Thing, make, wait } from "./parts/b.js";
said.push(one, second, all.one, plain(), again, new Thing().name, make());
said.push(new URL("../icon.svg", import.meta.url).href);
const load = () => import("./later.js");
/** @type {import("./parts/b.js").Thing} */
said.push("before");
load().then((found) => said.push(found.default(), found.late)).then(wait).then(tell);
""",
    "app/parts/a.js": "said.push('a');\nexport const one = 1;\nconst inner = 2;\nexport { inner as two };\n",
    "app/parts/b.js": """export { one as again } from "./a.js";
export class Thing { name = "thing"; }
export function make() { return "made"; }
export async function wait() {}
""",
    "app/later.js": """import { one } from "./parts/a.js";
said.push("later");
export default function Late() { return one; }
export const late = `export const x = 1`;
""",
    "vendor/plain.js": 'import{one as n}from"../app/parts/a.js";export default function(){return n+9}',
    "vendor/effect.js": "said.push('effect');var a=1;export{a as b};",
}


@needs("node")
def test_what_is_joined_does_what_the_modules_did(tmp_path: Path) -> None:
    """In the order in which a browser would run them, each once."""
    joined = join_modules(GRAPH, "app/main.js", "page.js")
    begin = "const said = []; const tell = () => console.log(JSON.stringify(said));\n"
    (tmp_path / "page.mjs").write_text(begin + joined)
    run = subprocess.run(
        ["node", tmp_path / "page.mjs"], capture_output=True, text=True, check=True, timeout=60
    )
    icon = (tmp_path / "icon.svg").as_uri()
    expected = [
        "a",
        "effect",
        1,
        2,
        1,
        10,
        1,
        "thing",
        "made",
        icon,
        "before",
        "later",
        1,
        "export const x = 1",
    ]
    assert json.loads(run.stdout) == expected


@pytest.mark.parametrize(
    ("modules", "words"),
    [
        ({"a.js": 'import { b } from "./b.js";'}, "a.js imports b.js, which is not there"),
        ({"a.js": 'import "./b.js";', "b.js": 'import "./a.js";'}, "in a circle: a.js → b.js → a.js"),
        ({"a.js": "export let count = 0;"}, "a.js: 'export let count = 0;' is not known here"),
        ({"a.js": 'export * from "./b.js";', "b.js": ""}, "is not known here"),
        ({"a.js": 'import b, { c } from "./b.js";', "b.js": ""}, "is not known here"),
        ({"a.js": "const load = (name) => import(name);"}, "is not known here"),
    ],
)
def test_what_cannot_be_joined_is_said(modules: dict[str, str], words: str) -> None:
    with pytest.raises(NotJoined, match=words.replace("*", r"\*")):
        join_modules(modules, "a.js", "page.js")


def test_every_module_of_the_page_is_in_it_once() -> None:
    """What lies there and is asked for by nobody is dead."""
    names = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.js")}
    sources = {name: leave_notes(name, (FOLDER / name).read_bytes()).decode() for name in names}
    joined = join_modules(sources, FIRST, "page.js")
    apart = {WORKER, "app/theme.js", "app/early.js"} | {
        f"app/stream/{name}.js" for name in ("fold", "reader", "slots", "sse")
    }
    assert joined.count("= __once(() => {\n") == len(names - apart)


def test_a_visit_takes_one_script_and_one_style() -> None:
    text = read_tree(FOLDER, None).files[INDEX].content.decode()
    assert text.count("<script type") == text.count('rel="stylesheet"') == 1
    assert text.count(".js") == 3  # the others set light or dark, and ask for what is needed meanwhile


def test_no_two_styles_mean_the_same_class() -> None:
    """A bare class belongs to one file: in another it would change what its author never saw."""
    owners: dict[str, list[str]] = {}
    for path in sorted((FOLDER / "styles").glob("*.css")):
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
        names = {
            name
            for selector in re.findall(r"([^{}]+)\{", text)
            for name in re.findall(r"(?:^|,)\s*\.([\w-]+)\s*(?=,|$)", selector.strip())
        }
        for name in names:
            owners.setdefault(name, []).append(path.name)
    assert len(owners) > 100
    assert {name: files for name, files in owners.items() if len(files) > 1} == {}
