"""An agent of a real server tries to get out of each level of containment; the table that says so is true."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.harness import ADMIN_TOKEN, until
from tests.conformance.escapes import GROUPS, LESS, LEVELS, OFF, OWN, PLAIN, TOKEN, TWINS, Escape, document
from tests.conformance.scene import Scene, made
from tests.needs import needs

pytestmark = [needs("bwrap"), pytest.mark.slow]
PAGE = Path(__file__).parents[2] / "docs" / "explain" / "containment.md"
ROWS = [row for rows in GROUPS.values() for row in rows]
LASTING = [row for row in ROWS if row.probe.startswith("survive_")]
TWINNED = [row for row in ROWS if row.twin in TWINS and row not in LASTING]
LITTLE = {"many": 20, "each": 5, "much": 32 << 20}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with made(tmp_path_factory.mktemp("escapes")) as scene:
        yield scene


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("row", [row for row in ROWS if row not in LASTING], ids=lambda row: row.probe)
def test_the_table_is_true(scene: Scene, level: str, row: Escape) -> None:
    found = scene.attempt(level, row.probe)
    expected = row.through(level, root=os.geteuid() == 0, groups=scene.groups, scopes=scene.scopes)
    assert expected is None or bool(found["loot"]) is expected, found
    assert ADMIN_TOKEN not in found["loot"] or row.probe == "servers_environment"


@pytest.mark.parametrize("row", TWINNED, ids=lambda row: row.probe)
def test_a_probe_gets_through_where_its_wall_is_off(scene: Scene, row: Escape, tmp_path: Path) -> None:
    """Else it could pass by failing. Only where the machine has a say may it fail everywhere."""
    if row.twin == OWN:
        found = scene.attempt("auto", row.probe, **scene.own("auto"))
    elif row.twin == LESS:
        found = scene.attempt("auto", row.probe, **LITTLE)
    elif row.twin == TOKEN:
        tokens = {"control_port": scene.app.token, "operator_routes": ADMIN_TOKEN}
        found = scene.without_walls(row.probe, tmp_path, **scene.facts["off"], token=tokens[row.probe])
    elif row.twin == PLAIN:
        found = scene.without_walls(row.probe, tmp_path, **scene.facts["off"])
    else:
        if row.off == "as root" and os.geteuid() != 0:
            pytest.skip("only root gets through here")
        found = scene.attempt("off", row.probe)
        if not found["loot"] and row.off in ("as root", "perhaps"):
            plain = scene.without_walls(row.probe, tmp_path, **scene.facts["off"])
            assert not plain["loot"], f"it works for the operator and not at `off`: {found}"
            pytest.skip(f"this machine refuses it to everybody: {plain['why']}")
    assert found["loot"], found


@pytest.mark.parametrize("row", LASTING, ids=lambda row: row.probe)
def test_a_stray_outlives_its_parent_where_nobody_ends_it(scene: Scene, row: Escape, tmp_path: Path) -> None:
    facts = {**scene.facts["off"], "lifetime": 4, "crowd": 10}
    order, answer = tmp_path / "order", tmp_path / "answer"
    scene.without_walls(row.probe, tmp_path, **facts)
    (beats,) = until(lambda: set(tmp_path.iterdir()) - {order, answer}, "the stray's first beat")
    size = beats.stat().st_size
    until(lambda: beats.stat().st_size > size, "another beat of the stray")


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


def test_there_are_many_probes_and_nearly_all_have_a_twin() -> None:
    assert len({row.probe for row in ROWS}) == len(ROWS) >= 150
    alone = [row for row in ROWS if row.twin not in TWINS]
    assert len(alone) <= 2
    assert all(row.twin.startswith("none: ") for row in alone)
    can_be = {OFF: {"yes", "as root", "perhaps"}}
    assert all(row.off in can_be.get(row.twin, {row.off}) for row in ROWS)


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
