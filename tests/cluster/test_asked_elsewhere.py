"""What is asked at the node that does not hold a session, and what all nodes count together."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.api.harness import App, until
from tests.cluster.kit import Cluster
from tests.needs import needs
from tests.postgres import Postgres

pytestmark = needs("postgres")
NODES = ("a", "b")


@pytest.fixture(scope="module")
def cluster(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One for all tests here: each has an app of its own."""
    made = Cluster(postgres.make_database(), tmp_path_factory.mktemp("nodes"))
    made.start(*NODES)
    yield made
    made.close()


def ask_at_once(asks: list[Callable[[], int]]) -> Counter[int]:
    """All of them in one moment; the statuses."""
    barrier = threading.Barrier(len(asks))

    def ask(one: Callable[[], int]) -> int:
        barrier.wait()
        return one()

    with ThreadPoolExecutor(len(asks)) as pool:
        return Counter(pool.map(ask, asks))


def submit(app: App, session: str, prompt: str) -> Callable[[], int]:
    return lambda: app.http.post(f"/sessions/{session}/turns", json={"prompt": prompt}).status_code


def turns(app: App, session: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = app.http.get(f"/sessions/{session}/turns").json()["turns"]
    return found


def wait_begun(app: App, session: str) -> None:
    def look() -> bool:
        events = app.http.get(f"/sessions/{session}/events").json()["events"]
        return any(event["type"] == "text" for event in events)

    until(look, "its agent has spoken")


@pytest.mark.parametrize(
    ("unit", "prompt"),
    [
        ({"max_tokens": 1, "share_tokens": 1}, "usage 1 0\necho a"),
        ({"max_cost_usd": 0.25, "share_cost_usd": 0.25}, "cost 0.25\necho a"),
    ],
    ids=["tokens", "cost"],
)
def test_two_nodes_never_let_two_turns_through_what_one_may_still_use(
    cluster: Cluster, unit: dict[str, float], prompt: str, request: pytest.FixtureRequest
) -> None:
    app = cluster.app(f"budget-{request.node.callspec.id}")
    most = next(iter(unit))
    for count in range(1, 5):
        sessions = [(app[node], app[node].session()) for node in NODES for _ in range(3)]
        body = {**unit, most: count * unit[most], "app_name": app["a"].name, "period": "total"}
        reply = cluster.nodes[NODES[count % 2]].admin().put("/admin/budgets", json=body)
        assert reply.status_code == 200, reply.text
        answers = ask_at_once([submit(one, session, prompt) for one, session in sessions])
        assert answers == {202: 1, 429: len(sessions) - 1}

        def settled() -> bool:
            (found,) = app["b"].http.get("/budgets").json()["budgets"]
            name = most.removeprefix("max_")
            return bool(found["reserved"][name] == 0 and found["spent"][name] == body[most])  # noqa: B023

        until(settled, "it has spent what it held")
        ended = [turn["outcome"] for one, session in sessions for turn in turns(one, session)]
        assert ended == ["completed"]


def test_two_nodes_let_no_more_turns_in_than_an_app_may_have(cluster: Cluster) -> None:
    app = cluster.app("in-flight")
    body = {"app_name": "in-flight", "limits": {"max_turns_in_flight": 2}}
    assert cluster.nodes["a"].admin().post("/admin/apps", json=body).status_code == 200
    sessions = [(app[node], app[node].session()) for node in NODES for _ in range(4)]
    for _ in range(3):
        answers = ask_at_once([submit(one, session, "echo on\nhang") for one, session in sessions])
        assert answers == {202: 2, 429: len(sessions) - 2}
        busy = [one for _, one in sessions if [turn for turn in turns(app["a"], one) if not turn["outcome"]]]
        for session, node in zip(busy, NODES, strict=True):
            assert app[node].http.post(f"/sessions/{session}/cancel", json={}).json()["cancelled"] == 1


@pytest.fixture
def busy(cluster: Cluster) -> str:
    """A session in which a turn runs at a."""
    session = cluster.apps["a"].session()
    cluster.submit("a", session, "echo before\nhang")
    wait_begun(cluster.apps["b"], session)
    return session


def test_a_prompt_that_queues_at_another_node_runs_where_the_agent_is(cluster: Cluster, busy: str) -> None:
    second = cluster.submit("b", busy, "count", if_busy="queue")
    found = cluster.turns("b", busy)
    assert [(turn["state"], turn["position"]) for turn in found] == [("running", None), ("queued", 0)]
    assert cluster.http("b").post(f"/sessions/{busy}/cancel", json={}).json()["cancelled"] == 1
    assert cluster.ended("b", busy, second)["outcome"] == "completed"
    assert str(cluster.folder("a")) in cluster.say("b", busy, "home")
    cluster.check_log("b", busy)


def test_a_prompt_is_rejected_at_another_node_while_a_turn_runs(cluster: Cluster, busy: str) -> None:
    reply = cluster.apps["b"].turn(busy, "echo no", if_busy="reject")
    assert (reply.status_code, reply.json()["code"]) == (409, "session_busy")
    assert reply.json()["active_turn"] == 1
    assert [turn["state"] for turn in cluster.turns("a", busy)] == ["running"]
    assert cluster.http("b").post(f"/sessions/{busy}/cancel", json={}).status_code == 200
    cluster.ended("b", busy, 1)
    assert cluster.apps["b"].turn(busy, "echo now", if_busy="reject").status_code == 200


@pytest.mark.parametrize("policy", ["interrupt", "rollback"])
def test_a_prompt_at_another_node_takes_the_place_of_the_turn_that_runs(
    cluster: Cluster, busy: str, policy: str
) -> None:
    waits = cluster.submit("b", busy, "echo last")
    reply = cluster.apps["b"].turn(busy, "recall", if_busy=policy)
    assert reply.status_code == 200, reply.text
    assert (reply.json()["outcome"], reply.json()["if_busy"]) == ("completed", policy)
    assert cluster.ended("b", busy, waits)["outcome"] == "completed"
    first = cluster.turns("b", busy)[0]
    assert (first["outcome"], first["cut"]) == ("cancelled", policy == "rollback")
    messages = cluster.http("b").get(f"/sessions/{busy}/messages").json()["messages"]
    said = [message["content"] for message in messages]
    assert ("echo before\nhang" in said) is (policy == "interrupt")
    assert said[-1] == "last", "what waited came after it"
    cluster.check_log("b", busy)


def test_files_are_undone_and_redone_at_the_node_that_does_not_have_them(cluster: Cluster) -> None:
    session = cluster.apps["a"].session()
    cluster.say("a", session, "write a.txt first")
    cluster.say("a", session, "write a.txt second\nwrite b.txt new")
    folder = Path(cluster.http("b").get(f"/sessions/{session}").json()["cwd"])
    assert folder.is_relative_to(cluster.folder("a"))
    reply = cluster.http("b").post(f"/sessions/{session}/undo", json={"files": True})
    assert reply.status_code == 200, reply.text
    assert cluster.say("b", session, "read a.txt") == "first"
    assert not (folder / "b.txt").exists()
    assert cluster.http("b").post(f"/sessions/{session}/redo", json={"files": True}).status_code == 409
    cluster.say("a", session, "write a.txt third")
    assert cluster.http("b").post(f"/sessions/{session}/undo", json={"files": True}).status_code == 200
    reply = cluster.http("b").post(f"/sessions/{session}/redo", json={"files": True})
    assert reply.status_code == 200, reply.text
    assert cluster.say("a", session, "read a.txt") == "third"
    cluster.wait_published(session, 5)
    sql = "SELECT workspace FROM publications WHERE session_id = $1"
    before = cluster.query(sql, session)
    assert cluster.http("b").post(f"/sessions/{session}/undo", json={"files": True}).status_code == 200
    assert cluster.http("b").post(f"/sessions/{session}/undo", json={"files": True}).status_code == 200
    assert (folder / "a.txt").read_text() == "first"
    until(lambda: cluster.query(sql, session) != before, "what was put back is published")
    cluster.check_log("b", session)
