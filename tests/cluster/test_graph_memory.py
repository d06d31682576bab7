"""A graph with its checkpoints in a database remembers on whichever node runs its next turn."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.harness import until
from tests.cluster.kit import LEASE_SECS, Cluster, guards
from tests.graph_database import GraphDatabase, free_port, write_agents
from tests.needs import needs
from tests.postgres import Postgres, run_postgres

pytestmark = [
    *(needs("postgres"), needs("langgraph"), needs("deepagents"), needs("langgraph-postgres")),
    pytest.mark.slow,
    pytest.mark.timeout(300),  # each start of a graph takes seconds of a processor that others use too
]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with run_postgres(port=free_port()) as running:
        yield running


@pytest.fixture
def database(postgres: Postgres) -> GraphDatabase:
    return GraphDatabase(postgres)


@pytest.fixture
def cluster(database: GraphDatabase, tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(database.main, tmp_path, "--config", str(write_agents(tmp_path)))
    made.lease_secs = LEASE_SECS
    made.start("a", "b", GRAPHS_DATABASE_URL=database.given, AGENT_START_SECS="60")
    yield made
    made.close()


def heard(cluster: Cluster, node: str, session: str) -> list[str]:
    found: list[str] = json.loads(cluster.say(node, session, "recall"))
    return found


def starts(cluster: Cluster, node: str, session: str) -> list[str]:
    return [event["how"] for event in cluster.events(node, session) if event["type"] == "context.started"]


def test_a_graph_remembers_on_another_node_when_the_first_was_killed(cluster: Cluster) -> None:
    session = cluster.apps["a"].session(agent="deep")
    file = {"file_path": "/notes.txt", "content": "only in the state of the graph"}
    cluster.say("a", session, f"call write_file {json.dumps(file)}\necho kept")
    cluster.wait_published(session, 1)
    cluster.submit("a", session, "echo half\nsleep 60")
    cluster.wait_for("b", session, "text", 2)
    cluster.nodes["a"].stop(signal.SIGKILL)
    assert cluster.ended("b", session, 2)["outcome"] == "interrupted"
    cluster.say("b", session, 'call read_file {"file_path": "/notes.txt"}\necho done')
    assert starts(cluster, "b", session) == ["new", "loaded"]
    read = [event for event in cluster.events("b", session) if event["type"] == "tool_update"]
    assert file["content"] in json.dumps(read[-1])
    assert heard(cluster, "b", session)[0].startswith("call write_file")
    cluster.check_log("b", session)


def test_undo_and_fork_reach_back_to_what_was_said_on_a_node_that_is_gone(cluster: Cluster) -> None:
    session = cluster.apps["a"].session(agent="graph")
    for word in ("one", "two", "three"):
        cluster.say("a", session, f"echo {word}")
    cluster.wait_published(session, 3)
    cluster.nodes["a"].stop(signal.SIGKILL)
    until(lambda: cluster.http("b").post(f"/sessions/{session}/undo", json={}).is_success, "an undo")
    assert heard(cluster, "b", session) == ["echo one", "echo two"]
    reply = cluster.http("b").post(f"/sessions/{session}/fork", json={"after_turn": 1})
    assert reply.status_code == 200, reply.text
    fork = reply.json()["session_id"]
    assert heard(cluster, "b", fork) == ["echo one"]
    assert starts(cluster, "b", session) == ["new", "restored"]
    assert starts(cluster, "b", fork)[-1] == "loaded"


def test_what_a_stale_holder_writes_is_not_seen(
    cluster: Cluster, database: GraphDatabase, postgres: Postgres
) -> None:
    session = cluster.apps["a"].session(agent="graph")
    cluster.say("a", session, "echo kept")
    cluster.wait_published(session, 1)
    [thread] = database.list_threads()  # its name ends with the claim, which is random
    cluster.submit("a", session, f"echo before\nsleep {3 * LEASE_SECS}\necho late")
    cluster.wait_for("b", session, "text", 2)
    for guard in guards(cluster.nodes["a"]):  # it would end the graph before it could be late
        os.kill(guard, signal.SIGSTOP)
    cluster.nodes["a"].process.send_signal(signal.SIGSTOP)
    assert cluster.ended("b", session, 2)["outcome"] == "interrupted"
    assert heard(cluster, "b", session)[0] == "echo kept"
    count = "SELECT count(*) FROM checkpoints WHERE thread_id = $1"
    before = database.fetch(count, thread)
    assert before[0][0], "what the first claim has kept"
    log = postgres.folder / "log"
    until(lambda: "violates row-level security" in log.read_text(), "the late write of the graph at a")
    cluster.nodes["a"].process.send_signal(signal.SIGCONT)
    until(lambda: cluster.http("a").get("/readyz").status_code == 200, "a to be back")
    assert "late" not in cluster.say("a", session, "echo on")
    assert database.fetch(count, thread) == before
    texts = heard(cluster, "a", session)
    assert texts[0] == "echo kept"
    assert texts[-1] == "echo on"
    cluster.check_log("b", session)


def test_threads_go_with_a_deleted_session(cluster: Cluster, database: GraphDatabase) -> None:
    gone, stays = (cluster.apps["a"].session(agent="graph") for _ in range(2))
    for session in (gone, stays):
        cluster.say("a", session, "echo one")
    assert cluster.http("b").post(f"/sessions/{gone}/purge").status_code == 200

    def swept() -> bool:
        cluster.nodes["a"].admin().post("/admin/sweep")
        cluster.nodes["b"].admin().post("/admin/sweep")
        return [name.split(":")[0] for name in database.list_threads()] == [stays]

    until(swept, "the sweep")
    assert database.fetch("SELECT session_id FROM marks") == [(stays,)]
