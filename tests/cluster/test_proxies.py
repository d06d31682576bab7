"""Callers behind a real proxy see one server, whichever node answers, also while one of them goes."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import httpx2
import pytest

from tests.api.harness import App, until
from tests.cluster.kit import Cluster
from tests.cluster.proxies import run_caddy, run_nginx
from tests.needs import needs

pytestmark = [needs("postgres"), pytest.mark.slow]
PROXIES = [
    pytest.param(run_caddy, marks=needs("caddy"), id="caddy"),
    pytest.param(run_nginx, marks=needs("nginx"), id="nginx"),
]


@pytest.fixture(params=PROXIES)
def site(request: pytest.FixtureRequest, cluster: Cluster, tmp_path: Path) -> Iterator[str]:
    cluster.start("a", "b")
    (folder := tmp_path / "proxy").mkdir()
    nodes = [node.url.removeprefix("http://") for node in cluster.nodes.values()]
    run: Callable[..., AbstractContextManager[str]] = request.param
    with run(nodes, folder) as found:
        yield found


@pytest.fixture
def caller(cluster: Cluster, site: str) -> Iterator[App]:
    app = cluster.apps["a"]
    bearer = {"Authorization": f"Bearer {app.token}"}
    with httpx2.Client(base_url=site, headers=bearer, timeout=60, verify=False) as http:
        yield App(app.name, app.token, app.token_id, http)


def test_words_arrive_while_the_agent_speaks(caller: App) -> None:
    session = caller.session()
    with caller.stream(f"/sessions/{session}/turn", "POST", json={"prompt": "chunks 40 8 100"}) as stream:
        times = [time.monotonic() for frame in stream if frame.event == "text"]
    assert len(times) >= 10, "a proxy that buffers has them all at once"
    assert times[-1] - times[0] > 1.5


def test_any_node_answers_and_a_large_upload_passes(caller: App, cluster: Cluster) -> None:
    session = caller.session()
    for number in range(1, 5):
        assert caller.turn(session, "count").json()["events"][0]["content"] == f"turn={number}"
    content = b"x" * (20 << 20)
    token = caller.http.post("/files", files={"file": ("a.bin", content)}).json()["file_token"]
    holders = [name for name in cluster.nodes if cluster.http(name).get(f"/files/{token}").status_code == 200]
    assert holders
    cluster.check_log("b", session)


def test_the_operators_routes_are_not_for_the_world(site: str) -> None:
    for path in ("/admin/nodes", "/admin", "/metrics"):
        assert httpx2.get(f"{site}{path}", verify=False).status_code == 404


def test_a_killed_node_is_passed_over(caller: App, cluster: Cluster) -> None:
    """What a proxy had begun to send to it may have been done, so a POST is not sent to another."""
    for _ in range(4):
        caller.session()
    cluster.nodes["a"].stop(signal.SIGKILL)
    assert [caller.http.get("/sessions").status_code for _ in range(10)] == [200] * 10
    replies = [caller.http.post("/sessions", json={"agent": "claude"}) for _ in range(20)]
    assert {reply.status_code for reply in replies} <= {200, 502}
    assert [reply.status_code for reply in replies[-10:]] == [200] * 10, "it was noticed"
    assert cluster.say("b", replies[-1].json()["session_id"], "echo on") == "on"


def test_a_node_that_is_stopped_leaves_nobody_without_an_answer(caller: App, cluster: Cluster) -> None:
    cluster.nodes["a"].process.send_signal(signal.SIGTERM)
    ended = cluster.nodes["a"].process
    codes = [caller.http.get("/sessions").status_code for _ in range(20)]
    until(lambda: ended.poll() is not None, "the node's end")
    codes += [caller.http.get("/sessions").status_code for _ in range(20)]
    assert set(codes) == {200}
    assert caller.turn(caller.session(), "echo on").status_code == 200
