"""Nodes behind a pooler that loses notifications find by themselves what is new."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.harness import until
from tests.cluster.kit import Cluster
from tests.needs import needs
from tests.postgres import Postgres
from tests.support.pooler import Pooler

pytestmark = needs("postgres")
SAID = "notifications do not arrive"


@pytest.fixture
def pooler(postgres: Postgres, tmp_path: Path) -> Iterator[Pooler]:
    made = Pooler(postgres, tmp_path, loses_notifications=True)
    yield made
    made.close()


@pytest.fixture
def deaf(postgres: Postgres, pooler: Pooler, tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(pooler.fit(postgres.make_database()), tmp_path)
    made.start("a", "b")
    yield made
    made.close()


def test_a_reader_follows_a_turn_at_another_node(deaf: Cluster) -> None:
    session = deaf.apps["a"].session()
    with deaf.apps["b"].stream(f"/sessions/{session}/events") as stream:
        deaf.say("a", session, "echo hello from a")
        frames = stream.upto("turn.ended")
    assert any("hello from a" in frame.data for frame in frames)
    assert SAID in deaf.nodes["b"].log_text
    deaf.check_log("b", session)


def test_prompts_cancels_and_permissions_reach_the_node_that_has_the_agent(deaf: Cluster) -> None:
    session = deaf.apps["a"].session(permission_mode="ask")
    assert deaf.say("a", session, "count") == "turn=1"
    assert deaf.say("b", session, "count") == "turn=2"
    turn = deaf.submit("b", session, "sleep 60")
    deaf.wait_for("b", session, "turn.started", 3)
    assert deaf.http("b").post(f"/sessions/{session}/cancel", json={}).status_code == 200
    assert deaf.ended("b", session, turn)["outcome"] == "cancelled"
    turn = deaf.submit("b", session, "ask edit a file")
    deaf.wait_for("b", session, "permission.requested")
    (asked,) = (
        deaf.http("b")
        .get(f"/sessions/{session}/permissions", params={"state": "pending"})
        .json()["permissions"]
    )
    path = f"/sessions/{session}/permissions/{asked['permission_id']}"
    assert deaf.http("b").post(path, json={"decision": "allow_once"}).status_code == 200
    assert deaf.ended("b", session, turn)["outcome"] == "completed"
    deaf.check_log("b", session)


def test_a_token_that_is_revoked_at_one_counts_nowhere(deaf: Cluster) -> None:
    app = deaf.nodes["a"].app("guest")
    there = deaf.nodes["b"].client(app.token)
    assert there.get("/sessions").status_code == 200
    assert deaf.nodes["a"].admin().delete(f"/admin/tokens/{app.token_id}").status_code == 200
    until(lambda: there.get("/sessions").status_code == 401, "the end of the token")


def test_what_a_node_says_of_it_it_says_once(deaf: Cluster, pooler: Pooler) -> None:
    until(lambda: SAID in deaf.nodes["a"].log_text, "the node's word")
    pooler.loses_notifications = False
    session = deaf.apps["a"].session()
    assert deaf.say("b", session, "echo one") == "one"
    assert deaf.nodes["a"].log_text.count(SAID) == 1
