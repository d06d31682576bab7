"""Nodes are upgraded one after another, or sweep at once, while clients go on: no prompt is lost."""

import random
import shutil
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from clawdforge import Forge
from tests.api.harness import until
from tests.cluster.balancer import Balancer
from tests.cluster.kit import Cluster
from tests.needs import needs

pytestmark = [
    needs("postgres"),
    pytest.mark.timeout(400),  # each start of a program of its own takes seconds of a processor
]
NAMES = ("a", "b", "c")
ROOT = Path(__file__).parents[2]
CLIENTS = 4
PROMPTS = 30


def _prompt_until(over: threading.Event, url: str, token: str, number: int) -> tuple[str, list[int]]:
    """Prompts through the SDK, as fast as they are taken; whatever it raises, its user would have seen."""
    accepted: list[int] = []
    with Forge(url, token) as forge:
        session = forge.create_session()
        while not over.is_set():
            accepted.append(session.submit(f"echo {number}.{len(accepted)}").turn_index)
            over.wait(0.1)
        return session.session_id, accepted


def _make_newer(folder: Path) -> Path:
    """The program with one more step, which adds a column to a table that every turn changes."""
    source = folder / "newer"
    shutil.copytree(ROOT / "src", source)  # with what is compiled, so that the first start is as fast
    steps = source / "clawdforge/stores/postgres/sql/migrations"
    step = steps / f"{len(list(steps.iterdir())) + 1:04}_newer.sql"
    step.write_text("ALTER TABLE sessions ADD COLUMN newer word NOT NULL DEFAULT 'new';")
    model = source / "clawdforge/core/models/rows.py"
    before, after = (
        "    own_cwd: bool = False",
        '    newer: str = "made by the newer"\n    own_cwd: bool = False',
    )
    text = model.read_text()
    assert text.count(before) == 1
    model.write_text(text.replace(before, after))
    return source


def test_a_rolling_upgrade_loses_no_prompt_and_shows_no_error(cluster: Cluster, tmp_path: Path) -> None:
    """The older nodes go on while newer ones have added to the tables; started again, they say why not."""
    cluster.start(*NAMES)
    cluster.source = _make_newer(tmp_path)
    token, over = cluster.apps["a"].token, threading.Event()
    with (
        Balancer(lambda: [cluster.nodes[name].url for name in NAMES]) as balancer,
        ThreadPoolExecutor(CLIENTS) as pool,
    ):
        clients = [pool.submit(_prompt_until, over, balancer.url, token, one) for one in range(CLIENTS)]
        try:
            for name in NAMES:
                cluster.nodes[name].stop()
                cluster.start(name)
                made = cluster.apps[NAMES[-1]].session()  # by the oldest that is left
                cluster.say(name, made, "echo of one version at another")
        finally:
            over.set()
        talks = dict(client.result() for client in clients)
    for session, accepted in talks.items():
        assert accepted == list(range(1, len(accepted) + 1))
        _wait_for_all(cluster, session, len(accepted))
        assert len(accepted) >= 10
    assert {row[0] for row in cluster.query("SELECT newer FROM sessions")} == {"new", "made by the newer"}
    cluster.nodes["a"].stop()
    cluster.source = None
    with pytest.raises(AssertionError, match="written by a newer clawdforge"):
        cluster.start("a")


def test_sweeps_at_two_nodes_race_prompts_and_no_prompt_is_lost(cluster: Cluster) -> None:
    cluster.start("a", "b", SWEEP_SECS="3600", SESSION_TTL_SECS="0", SESSION_HARD_TTL_SECS="3600")
    talks = {cluster.apps[node].session(): list[int]() for node in ("a", "b", "a", "b")}
    seen = Counter[int]()
    runners = [
        threading.Thread(target=_race_sweeps, args=(cluster, session, seen, accepted))
        for session, accepted in talks.items()
    ]
    for runner in runners:
        runner.start()
    closed = 0
    while any(runner.is_alive() for runner in runners):
        for node in ("a", "b"):
            reply = cluster.nodes[node].admin().post("/admin/sweep")
            assert reply.status_code == 200, reply.text
            closed += reply.json()["soft_closed"]
    assert set(seen) <= {200, 202, 410}, seen
    assert closed > 0
    assert seen[410] > 0, "the sweepers never won"
    for session, accepted in talks.items():
        assert accepted == list(range(1, len(accepted) + 1))
        _wait_for_all(cluster, session, len(accepted))


def _race_sweeps(cluster: Cluster, session: str, seen: Counter[int], accepted: list[int]) -> None:
    """Prompt at one node and the other; a session that was closed meanwhile is opened again.

    On a busy machine sweeps are few, so it goes on for longer until one has come between.
    """
    waits = random.Random(session)  # noqa: S311 - a pace
    for number in range(4 * PROMPTS):
        if number >= PROMPTS and seen[410]:
            return
        http = cluster.http("ab"[number % 2])
        path = f"/sessions/{session}/{'turns' if number % 3 else 'turn'}"
        reply = http.post(path, json={"prompt": "echo hi"})
        seen[reply.status_code] += 1
        if reply.status_code == 410:
            http.post(f"/sessions/{session}/reopen", json={})
        elif reply.status_code in (200, 202):
            accepted.append(reply.json()["turn_index"])
        time.sleep(waits.random() * 0.5)  # a caller's pace, not synchronisation


def _turns(cluster: Cluster, node: str, session: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = (
        cluster.http(node).get(f"/sessions/{session}/turns", params={"limit": 1000}).json()["turns"]
    )
    return found


def _wait_for_all(cluster: Cluster, session: str, wanted: int) -> None:
    """Every prompt that was taken is a turn that was completed."""

    def are_ended() -> bool:
        turns = _turns(cluster, "b", session)
        return len(turns) == wanted and all(turn["state"] == "ended" for turn in turns)

    until(are_ended, f"the end of {wanted} turns", 120)
    assert {turn["outcome"] for turn in _turns(cluster, "b", session)} == {"completed"}
    cluster.check_log("a", session)
