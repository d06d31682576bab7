"""The source tree keeps its rules, and each rule is shown to bite."""

import subprocess
from pathlib import Path

import pytest

from tests.layout import Module, check, cycles
from tests.walls import FENCES, LAYERS, MAX_LINES, ROOMS, ROOT, TASK_TOPS

TOP = Path(__file__).parent.parent
SOURCES = sorted((TOP / "src").rglob("*.py"))
OTHERS = sorted(path for folder in ("tests", "bench", "proofs") for path in (TOP / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    return str(path.relative_to(TOP))


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_module_keeps_the_rules(path: Path) -> None:
    assert check(Module.read(path, TOP / "src")) == []


@pytest.mark.parametrize("path", OTHERS, ids=name_of)
def test_other_code_is_short_and_says_what_it_is(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert source.count("\n") <= MAX_LINES
    assert source.startswith(('"""', "#!"))


def test_there_is_no_import_cycle() -> None:
    modules = [Module.read(path, TOP / "src") for path in SOURCES]
    assert cycles({module.name: module for module in modules}) == []


def test_every_part_of_the_tree_has_a_layer() -> None:
    parts = {Module.read(path, TOP / "src").part for path in SOURCES}
    assert parts <= set(LAYERS)


def test_the_list_of_rooms_is_the_tree() -> None:
    folders = {path.parent for path in SOURCES if path.parent.parent.parent == TOP / "src" / ROOT}
    found = {".".join(folder.relative_to(TOP / "src" / ROOT).parts) for folder in folders}
    halls = {name for name in ROOMS if "." not in name}
    assert {name for name in found if name.split(".")[0] in halls} == set(ROOMS) - halls


def test_the_list_of_task_tops_is_not_stale() -> None:
    broad = {"except Exception", "except BaseException", "except:"}
    for name in TASK_TOPS:
        path = TOP / "src" / (name.replace(".", "/") + ".py")
        assert path.is_file(), f"{name} is listed as the top of a task and does not exist"
        assert any(word in path.read_text() for word in broad), f"{name} need not be in TASK_TOPS"


def test_no_file_names_a_registry() -> None:
    hosts = [".".join(words) for words in (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"))]
    listed = subprocess.run(["git", "ls-files"], cwd=TOP, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    for name in listed.stdout.splitlines():
        path = TOP / name
        text = path.read_bytes().decode("utf-8", "replace") if path.is_file() else ""
        assert not [host for host in hosts if host in text], name


PLANTED = [
    ("wire.x", "from clawdforge.core.log import Log", "wire imports clawdforge.core.log"),
    ("core.x", "import clawdforge.stores.sqlite.store", "core imports clawdforge.stores.sqlite.store"),
    ("core.x", "from clawdforge import stores", "core imports clawdforge.stores"),
    (
        "stores.x",
        "from clawdforge.drivers.acp.driver import Acp",
        "stores imports clawdforge.drivers.acp.driver",
    ),
    ("http.x", "from clawdforge.stores import sqlite", "http imports clawdforge.stores"),
    ("client.x", "from clawdforge.core import clock", "client imports clawdforge.core"),
    ("cli.x", "from clawdforge.server import serve", "cli imports clawdforge.server"),
    ("core.x", "from clawdforge.scripted import main", "core imports clawdforge.scripted"),
    ("core.x", "from clawdforge import Forge", "core imports clawdforge.Forge"),
    ("newpart.x", "from clawdforge.wire import base", "newpart imports clawdforge.wire"),
    (
        "http.dialects.hermes",
        "from clawdforge.http.dialects.forge.routers import f",
        "a dialect imports another",
    ),
    (
        "core.rules.x",
        "from clawdforge.core.running.pool import AgentPool",
        "core.rules looks into core.running",
    ),
    (
        "core.running.x",
        "from clawdforge.core.services import turns",
        "core.running looks into core.services",
    ),
    ("core.x", "from clawdforge.core import services", "core looks into core.services"),
    ("drivers.acp.x", "from clawdforge.drivers.acpx import host", "drivers.acp looks into drivers.acpx"),
    (
        "drivers.processes.x",
        "from clawdforge.drivers.folders.homes import Homes",
        "drivers.processes looks into drivers.folders",
    ),
    ("cli.output.x", "from clawdforge.cli.repl.start import converse", "cli.output looks into cli.repl"),
    ("core.rules.x", "import asyncio", "asyncio is not for rules"),
    ("core.rules.x", "from clawdforge.core.ports import LiveAgent", "the port LiveAgent is not for rules"),
    ("core.rules.x", "CALL = 'toolCallId'", "toolCallId is a word of the agents' protocol"),
    ("core.running.x", 'def f(m):\n    return m["params"]', "is a word of the agents' protocol"),
    ("core.x", "# what sessionUpdate says", "sessionUpdate is a word of the agents' protocol"),
    ("core.x", "from fastapi import FastAPI", "fastapi is not for core"),
    ("core.x", "import starlette.requests", "starlette is not for core"),
    ("core.x", "import apsw", "apsw is not for core"),
    ("http.x", "import subprocess", "subprocess is not for http"),
    (
        "core.x",
        "import asyncio\nasyncio.create_subprocess_exec('x')",
        "create_subprocess_exec is not for core",
    ),
    ("core.x", "import os\nos.fork()", "fork is not for core"),
    ("core.x", "import httpx2", "httpx2 is not for core"),
    ("client.x", "import click", "click is not for client"),
    ("core.x", "import multiprocessing", "multiprocessing is not for core"),
    ("core.x", "def f():\n    import json", "import of json inside a function"),
    ("cli.commands.serve", "def f():\n    from clawdforge.server import serve", "inside a function"),
    ("core.x", "import importlib\nimportlib.import_module('clawdforge.stores')", "import by name"),
    ("core.x", "from . import log", "relative import"),
    ("core.x", "cache = {}", "state at module level"),
    ("core.x", "seen: set[str] = set()", "state at module level"),
    ("core.x", "items = [n for n in range(3)]", "state at module level"),
    ("core.x", "service = Service()", "state at module level"),
    ("core.x", "import asyncio\nLOCK = asyncio.Lock()", "state at module level"),
    ("core.x", "N = 0\ndef f():\n    global N\n    N = 1", "global statement"),
    ("core.x", "try:\n    f()\nexcept Exception:\n    pass", "broad except"),
    ("core.x", "try:\n    f()\nexcept:\n    pass", "broad except"),
    ("core.x", "try:\n    f()\nexcept (OSError, BaseException):\n    pass", "broad except"),
    ("core.x", "import time\nprint(time.time())", "time.time outside the clock"),
    ("http.x", "from datetime import datetime\ndatetime.now()", "datetime.now outside the clock"),
    ("http.x", "import datetime as d\nd.datetime.utcnow()", "datetime.utcnow outside the clock"),
    ("core.x", "from time import time", "import time, not from it"),
    ("core.x", "pass\n" * (MAX_LINES + 1), f"more than {MAX_LINES} lines"),
]


@pytest.mark.parametrize(("name", "source", "finding"), PLANTED)
def test_a_planted_violation_is_found(name: str, source: str, finding: str) -> None:
    found = check(Module.parse(f"{ROOT}.{name}", f'"""Says what it is."""\n{source}\n'))
    assert any(finding in line for line in found), found


def test_a_missing_docstring_is_found() -> None:
    assert check(Module.parse(f"{ROOT}.core.x", "# first\n")) == [
        f"{ROOT}.core.x:1: no docstring on the first line"
    ]


ALLOWED = [
    ("core.x", "from clawdforge.wire.base import Json\nfrom clawdforge import __version__"),
    ("cli.commands.serve", "from clawdforge.start import run"),
    ("http.dialects.hermes", "from clawdforge.http.dialects.hermes.shapes import f"),
    ("drivers.x", "import asyncio\nasyncio.create_subprocess_exec('x')"),
    ("drivers.acp.x", "WORD = 'sessionUpdate'"),
    ("core.x", "def f(params):\n    return params"),
    ("core.x", "from typing import Final, TypeVar\nT = TypeVar('T')\nnames: Final = {'a': 1}\nMAX = {1, 2}"),
    ("core.x", "import re\nWORD = re.compile('x')"),
    ("core.x", "try:\n    f()\nexcept BaseException:\n    undo()\n    raise"),
    ("core.x", "import time\nprint(time.monotonic())"),
    ("cli.x", "import time\nprint(time.time())"),
]


@pytest.mark.parametrize(("name", "source"), ALLOWED)
def test_what_is_allowed_is_not_reported(name: str, source: str) -> None:
    assert check(Module.parse(f"{ROOT}.{name}", f'"""Says what it is."""\n{source}\n')) == []


def test_a_planted_cycle_is_found() -> None:
    sources = {"core.a": "from clawdforge.core import b", "core.b": "from clawdforge.core.a import x"}
    modules = {f"{ROOT}.{name}": Module.parse(f"{ROOT}.{name}", text) for name, text in sources.items()}
    assert cycles(modules) == ["clawdforge.core.a → clawdforge.core.b → clawdforge.core.a"]


def test_a_planted_cycle_of_types_is_found() -> None:
    """Each of the two can be imported, yet neither can be understood without the other."""
    sources = {
        "client.a": "from clawdforge import __version__\nfrom clawdforge.client.b import B",
        "client.b": "if TYPE_CHECKING:\n    from clawdforge.client.a import A",
        "": "if TYPE_CHECKING:\n    from clawdforge.client.a import A",
    }
    names = {name: f"{ROOT}.{name}".rstrip(".") for name in sources}
    modules = {names[name]: Module.parse(names[name], text) for name, text in sources.items()}
    assert cycles(modules) == ["clawdforge.client.a → clawdforge.client.b → clawdforge.client.a"]


def test_fences_name_parts_that_exist() -> None:
    assert set().union(*FENCES.values()) <= set(LAYERS)
