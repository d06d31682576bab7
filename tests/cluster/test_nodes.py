"""Any node answers any request, and what a node leaves behind is taken over by another."""

import signal
import time

import pytest

from tests.api.harness import until
from tests.cluster.kit import LEASE_SECS, TALKS_ON, Cluster
from tests.needs import needs

pytestmark = needs("postgres")


def test_any_node_answers_for_a_session_that_another_holds(cluster: Cluster) -> None:
    cluster.start("a", "b")
    session = cluster.apps["a"].session()
    assert cluster.say("a", session, "remember blue") != ""
    assert cluster.say("b", session, "count") == "turn=2"  # of the agent at a, which knows the first
    assert cluster.say("a", session, "count") == "turn=3"
    assert len(cluster.turns("b", session)) == 3
    cluster.check_log("b", session)


def test_a_reader_at_one_node_follows_a_turn_at_another(cluster: Cluster) -> None:
    cluster.start("a", "b")
    session = cluster.apps["a"].session()
    with cluster.apps["b"].stream(f"/sessions/{session}/events") as stream:
        cluster.say("a", session, "echo hello from a")
        frames = stream.upto("turn.ended")
    assert any("hello from a" in frame.data for frame in frames)


def test_a_turn_is_cancelled_from_another_node(cluster: Cluster) -> None:
    cluster.start("a", "b")
    session = cluster.apps["a"].session()
    cluster.submit("a", session, "sleep 60")
    cluster.wait_for("b", session, "turn.started")
    began = time.monotonic()
    reply = cluster.http("b").post(f"/sessions/{session}/cancel", json={})
    assert reply.status_code == 200, reply.text
    assert cluster.ended("b", session, 1)["outcome"] == "cancelled"
    assert time.monotonic() - began < 20
    assert cluster.say("b", session, "echo on") != ""
    cluster.check_log("a", session)


def test_a_permission_is_decided_at_another_node(cluster: Cluster) -> None:
    cluster.start("a", "b")
    session = cluster.apps["a"].session(permission_mode="ask")
    cluster.submit("a", session, "ask edit a file")
    cluster.wait_for("b", session, "permission.requested")
    (asked,) = cluster.http("b").get(f"/sessions/{session}/permissions").json()["permissions"]
    path = f"/sessions/{session}/permissions/{asked['permission_id']}"
    assert cluster.http("b").post(path, json={"decision": "allow_once"}).status_code == 200
    assert cluster.ended("b", session, 1)["outcome"] == "completed"


@pytest.mark.usefixtures("mortal")
def test_a_killed_node_loses_its_turn_and_another_runs_what_waits(cluster: Cluster) -> None:
    cluster.start("a", "b")
    session = cluster.apps["a"].session()
    cluster.submit("a", session, "echo before\nsleep 60")
    cluster.wait_for("b", session, "text")
    waits = cluster.submit("b", session, "echo after")
    cluster.nodes["a"].stop(signal.SIGKILL)
    began = time.monotonic()
    assert cluster.ended("b", session, waits)["outcome"] == "completed"
    assert time.monotonic() - began < 3 * LEASE_SECS + 10
    assert cluster.turns("b", session)[0]["outcome"] == "interrupted"
    cluster.check_log("b", session)


def test_a_node_that_stops_gives_its_sessions_back_at_once(cluster: Cluster) -> None:
    cluster.start("a", "b")
    session = cluster.apps["a"].session()
    assert cluster.say("a", session, "count") != ""
    cluster.nodes["a"].stop()
    assert cluster.say("b", session, "echo here now") != ""
    cluster.check_log("b", session)


@pytest.mark.usefixtures("mortal")
def test_a_frozen_node_is_given_up_and_ends_what_it_ran_when_it_wakes(cluster: Cluster) -> None:
    cluster.start("a", "b")
    session = cluster.apps["a"].session()
    cluster.submit("a", session, TALKS_ON)
    cluster.wait_for("b", session, "text")
    cluster.nodes["a"].process.send_signal(signal.SIGSTOP)
    until(lambda: cluster.turns("b", session)[0]["state"] == "ended", "the end of the turn at b")
    before = cluster.said("b", session)
    assert cluster.say("b", session, "echo at b") != ""
    cluster.nodes["a"].process.send_signal(signal.SIGCONT)
    health = cluster.nodes["a"].admin()
    until(lambda: health.get("/healthz").json()["live_agents"] == 0, "the end of the agent at a")
    assert "at a too" in cluster.say("a", session, "echo at a too")
    assert [turn["outcome"] for turn in cluster.turns("a", session)] == [
        "interrupted", "completed", "completed",
    ]  # fmt: skip
    late = "what the agent said before its end came too late"
    assert cluster.said("b", session) == [*before, "at b", "at a too"], late
    cluster.check_log("b", session)
    assert cluster.say("b", cluster.apps["a"].session(), "echo a runs again") == "a runs again"


def test_history_is_changed_at_a_node_that_does_not_hold_the_session(cluster: Cluster) -> None:
    cluster.start("a", "b")
    session = cluster.apps["a"].session()
    cluster.say("a", session, "count")
    cluster.say("a", session, "count")
    reply = cluster.http("b").post(f"/sessions/{session}/undo", json={})
    assert reply.status_code == 200, reply.text
    assert cluster.say("b", session, "count") == "turn=2"
    cluster.check_log("a", session)


def test_a_token_that_is_revoked_at_one_node_ends_its_streams_at_another(cluster: Cluster) -> None:
    cluster.start("a", "b")
    app = cluster.apps["b"]
    session = app.session()
    with app.stream(f"/sessions/{session}/events") as stream:
        stream.upto("session.created")
        assert cluster.nodes["a"].admin().delete(f"/admin/tokens/{app.token_id}").status_code == 200
        assert all(frame.event != "text" for frame in stream)  # it ends
    assert cluster.http("b").get(f"/sessions/{session}").status_code == 401


def test_a_server_that_was_killed_and_started_again_waits_for_no_lease(cluster: Cluster) -> None:
    cluster.start("a", LEASE_SECS="600")
    session = cluster.apps["a"].session()
    cluster.submit("a", session, "echo before\nsleep 60")
    cluster.wait_for("a", session, "text")
    cluster.nodes["a"].stop(signal.SIGKILL)
    cluster.start("a", LEASE_SECS="600")
    assert cluster.turns("a", session)[0]["outcome"] == "interrupted"
    assert cluster.say("a", session, "echo on") == "on"
    cluster.check_log("a", session)


def test_a_session_with_a_workspace_of_its_own_runs_where_that_is(cluster: Cluster) -> None:
    """Also after its agent went to sleep, when nobody holds the session, and after all nodes were gone."""
    cluster.start("a", "b", AGENT_IDLE_SECS="0.5")
    session = cluster.apps["a"].session()
    assert "wrote" in cluster.say("b", session, "write here.txt hello")
    file = cluster.nodes["a"].data_dir / "workspaces" / session / "here.txt"
    assert file.exists()

    def held() -> list[int]:
        found = cluster.nodes["b"].admin().get("/admin/nodes").json()["nodes"]
        return [node["sessions"] for node in found]

    until(lambda: held() == [0, 0], "nobody holds the session")
    assert cluster.say("b", session, "read here.txt") == "hello"
    for name in ("a", "b"):
        cluster.nodes[name].stop()
    cluster.start("b", "a")
    assert cluster.say("b", session, "read here.txt") == "hello"
    assert cluster.say("a", session, "read here.txt") == "hello"
    assert not (cluster.nodes["b"].data_dir / "workspaces" / session).exists()


@pytest.mark.usefixtures("mortal")
def test_nodes_are_listed_with_what_they_hold(cluster: Cluster) -> None:
    cluster.start("a", "b")
    session = cluster.apps["a"].session()
    cluster.say("a", session, "echo hi")
    found = cluster.nodes["b"].admin().get("/admin/nodes").json()["nodes"]
    assert [node["state"] for node in found] == ["up", "up"]
    assert [node["sessions"] for node in found] == [1, 0]
    assert [node["is_this"] for node in found] == [False, True]
    assert sum(node["is_on_duty"] for node in found) == 1
    cluster.nodes["a"].stop(signal.SIGKILL)

    def left() -> bool:
        known = cluster.nodes["b"].admin().get("/admin/nodes").json()["nodes"]
        return [node["is_on_duty"] for node in known] == [True]

    until(left, "the other one has the duty")
