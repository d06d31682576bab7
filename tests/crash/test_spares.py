"""Spare agents and kill -9: nothing of one is left running, and no session is lost or begun twice."""

import time
from collections.abc import Callable

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.upkeep.deep import examine_deep
from tests.api.harness import until
from tests.crash.kit import Forge

pytestmark = pytest.mark.slow


def live_agents(found: Forge) -> int:
    return int(found.http.get("/healthz").json()["live_agents"])


def test_a_session_that_has_just_been_given_a_spare_survives_a_kill(forge: Callable[..., Forge]) -> None:
    found = forge(SPARE_AGENTS="1")
    found.turn(found.session(), "echo one")
    until(lambda: live_agents(found) == 2, "a spare agent")
    session_id = found.session(title="given")
    assert live_agents(found) == 2
    found.kill()
    found.restart()
    assert found.http.get(f"/sessions/{session_id}").json()["title"] == "given"
    assert live_agents(found) == 0
    found.turn(session_id, "echo two")
    found.check(session_id)


@pytest.mark.parametrize("moment", [0, 0.05, 0.1, 0.2, 0.4])
def test_a_kill_while_a_spare_is_started_leaves_a_sound_folder(
    forge: Callable[..., Forge], moment: float
) -> None:
    found = forge(SPARE_AGENTS="1")
    first = found.session()
    found.turn(first, "echo one")
    time.sleep(moment)
    found.kill()
    told = examine_deep(found.server.data_dir, SystemClock(), repair=False)
    assert [one.text for one in told if one.level != "ok"] == []
    found.restart()
    assert [row["session_id"] for row in found.http.get("/sessions").json()["sessions"]] == [first]
    assert found.remembered(found.session()) == []
    assert found.remembered(first) == ["echo one"]
    assert not list((found.server.data_dir / "lost").glob("*"))
