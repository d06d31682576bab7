"""An agent of a real server tries to get out of each level of containment; the table that says so is true."""

import json
import os
import shutil
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.api.harness import ADMIN_TOKEN, App, Server, until
from tests.conformance.escapes import GROUPS, LEVELS, Escape, document
from tests.needs import needs

pytestmark = [needs("bwrap"), pytest.mark.slow]
HOSTILE = "from tests.conformance.hostile import Client; Client().serve()"
PAGE = Path(__file__).parents[2] / "docs" / "explain" / "containment.md"
ROWS = [row for rows in GROUPS.values() for row in rows]
LASTING = [row for row in ROWS if row.probe.startswith("survive_")]
SECRET = "canary-of-another-session"
BOUNDS = {"CLAWDFORGE_AGENT_MAX_PROCESSES": "500", "CLAWDFORGE_AGENT_MAX_MEMORY_BYTES": "500MiB"}
"""Far less than the bombs try, and more than two hundred strays need."""


@dataclass
class Scene:
    """A server with an agent at each level, another session beside each, and places outside."""

    server: Server
    app: App
    sessions: dict[str, str]
    facts: dict[str, dict[str, Any]]

    @property
    def groups(self) -> bool:
        """Whether this machine holds agents to both limits."""
        health = self.app.http.get("/healthz").json()
        return None not in (health["agent_max_processes"], health["agent_max_memory_bytes"])

    def attempt(self, level: str, probe: str) -> dict[str, str]:
        order = json.dumps({"probe": probe, "facts": self.facts[level]})
        reply = self.app.turn(self.sessions[level], order)
        if reply.status_code == 502:
            return {"loot": "", "why": reply.json()["error"]}
        assert reply.status_code == 200, reply.text
        texts = [event["content"] for event in reply.json()["events"] if event["type"] == "text"]
        found: dict[str, str] = json.loads("".join(texts))
        return found


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    root = tmp_path_factory.mktemp("escapes")
    config = root / "clawdforge.toml"
    program = Path("/var/tmp") / f"clawdforge-hostile-{os.getpid()}"  # `full` hides /tmp, where we may lie
    parts = program / "tests" / "conformance"
    parts.mkdir(parents=True)
    for name in ("hostile.py", "bombs.py"):
        shutil.copy(Path(__file__).with_name(name), parts)
    (program / "__main__.py").write_text(HOSTILE)
    command = json.dumps(f"{sys.executable} -I {program}")
    config.write_text(
        "".join(f'[agents.{level}]\ncommand = {command}\nsandbox = "{level}"\n' for level in LEVELS)
    )
    users_file = Path("/var/tmp") / f"clawdforge-escapes-{os.getpid()}"
    users_file.write_text(SECRET)
    server = Server(root / "data", BOUNDS, "--config", str(config), cold=True)
    named = Path("/tmp") / f"clawdforge-escapes-{os.getpid()}.sock"
    listeners = [socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX), socket.socket()]
    listeners[0].bind(f"\0{users_file}")
    listeners[1].bind(str(named))
    listeners[2].bind(("127.0.0.1", 0))
    for listener in listeners:
        listener.listen(64)
    outside = {
        "data": str(server.data_dir),
        "server": server.process.pid,
        "url": server.url,
        "outside": "put there",
        "users_file": str(users_file),
        "abstract": str(users_file),
        "named": str(named),
        "listener": listeners[2].getsockname()[1],
    }
    try:
        app = server.app()
        sessions = {level: app.session(agent=level) for level in LEVELS}
        facts = {level: {**outside, **victim(server, level)} for level in LEVELS}
        yield Scene(server, app, sessions, facts)
    finally:
        server.stop()
        for listener in listeners:
            listener.close()
        shutil.rmtree(program)
        for path in (users_file, named, users_file.with_suffix(".evil")):
            path.unlink(missing_ok=True)


def victim(server: Server, level: str) -> dict[str, Any]:
    """Another app's session with a live agent and something to steal."""
    app = server.app()
    sid = app.session(agent=level)
    reply = app.turn(
        sid, json.dumps({"probe": "core_file", "facts": {"data": "/", "server": 1, "victim": 1}})
    )
    assert reply.status_code == 200, reply.text
    home, workspace = (server.data_dir / name / sid for name in ("homes", "workspaces"))
    for folder in (home, workspace, home / "doomed"):
        folder.mkdir(exist_ok=True)
        (folder / "secret").write_text(SECRET)
    files = app.http.post("/files", files={"file": ("a.txt", b"upload")})
    assert files.status_code == 200, files.text
    pid = until(lambda: agent_of(home), "the other agent")
    return {
        "victim": pid,
        "other_home": str(home),
        "other_secret": str(home / "secret"),
        "other_workspace": str(workspace),
    }


def agent_of(home: Path) -> int | None:
    """The process of the agent itself, not what stands above it."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
            mine = f"HOME={home}\0".encode() in path.with_name("environ").read_bytes()
        except OSError:
            continue
        if mine and words[:2] == [os.fsencode(sys.executable), b"-I"] and b"hostile" in words[2]:
            return int(path.parent.name)
    return None


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("row", [row for row in ROWS if row not in LASTING], ids=lambda row: row.probe)
def test_the_table_is_true(scene: Scene, level: str, row: Escape) -> None:
    found = scene.attempt(level, row.probe)
    expected = row.through(level, root=os.geteuid() == 0, groups=scene.groups)
    assert expected is None or bool(found["loot"]) is expected, found
    assert ADMIN_TOKEN not in found["loot"] or row.probe == "servers_environment"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("row", LASTING, ids=lambda row: row.probe)
def test_nothing_outlives_its_session(scene: Scene, level: str, row: Escape) -> None:
    app = scene.app
    sid = app.session(agent=level)
    workspace = Path(app.http.get(f"/sessions/{sid}").json()["cwd"])
    app.turn(sid, json.dumps({"probe": row.probe, "facts": scene.facts[level]}))
    if row.probe != "survive_by_killing_the_parent":
        until(lambda: any(path.stat().st_size for path in workspace.iterdir()), "a stray's first beat")
    assert app.http.delete(f"/sessions/{sid}").status_code == 200
    before = {path: path.stat().st_size for path in workspace.iterdir()}
    time.sleep(0.3)  # fifteen beats
    assert {path: path.stat().st_size for path in workspace.iterdir()} == before


@needs("cgroups")
def test_health_says_what_agents_are_held_to(scene: Scene) -> None:
    health = scene.app.http.get("/healthz").json()
    assert (health["agent_max_processes"], health["agent_max_memory_bytes"]) == (500, 500 << 20)
    assert health["agent_limits"] in ("cgroup v1", "cgroup v2")


@needs("cgroups")
@pytest.mark.parametrize("level", LEVELS)
def test_a_bomb_ends_its_own_turn_and_nobody_elses(scene: Scene, level: str) -> None:
    app, neighbour = scene.app, scene.app.session(agent=level)
    sid = app.session(agent=level)
    reply = app.turn(sid, json.dumps({"probe": "much_memory", "facts": scene.facts[level]}))
    assert reply.status_code == 502, reply.text
    assert "probably killed for using too much memory; its limit is 500 MiB" in reply.json()["error"]
    order = json.dumps({"probe": "many_processes", "facts": scene.facts[level]})
    for session in (sid, neighbour):  # the first with a new agent
        reply = app.turn(session, order)
        assert reply.status_code == 200, reply.text
        assert "Resource temporarily unavailable" in reply.text
    reply = app.turn(sid, order.replace("many_processes", "many_processes_in_terminals"))
    assert reply.status_code == 200, reply.text
    assert "Cannot fork" in reply.text or "Resource temporarily unavailable" in reply.text


def test_there_are_forty_probes_and_more() -> None:
    assert len({row.probe for row in ROWS}) == len(ROWS) >= 40


def test_the_documentation_has_the_same_table() -> None:
    text = PAGE.read_text()
    before, start, rest = text.partition("<!-- escapes -->\n")
    _, end, after = rest.partition("<!-- /escapes -->\n")
    assert start, "the page has no place for the table"
    assert end, "the page has no end of the table"
    made = f"{before}{start}\n{document()}{end}{after}"
    if os.environ.get("CLAWDFORGE_TEST_UPDATE_GOLDEN"):
        PAGE.write_text(made)
    assert text == made, "run CLAWDFORGE_TEST_UPDATE_GOLDEN=1 pytest tests/conformance/test_escapes.py"
