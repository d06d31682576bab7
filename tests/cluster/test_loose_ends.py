"""What is done at one node reaches the others: the end of a session, its files, and runs that are stopped."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.api.harness import until
from tests.cluster.kit import Cluster
from tests.needs import needs
from tests.support.folders import everything_below

pytestmark = needs("postgres")


def test_readers_of_a_session_that_is_deleted_at_another_node_end(cluster: Cluster) -> None:
    cluster.start("a", "b")
    session = cluster.apps["a"].session()
    assert cluster.say("a", session, "echo hello") == "hello"
    with cluster.apps["b"].stream(f"/sessions/{session}/events") as stream:
        stream.upto("turn.ended")
        reply = cluster.http("a").post(f"/sessions/{session}/purge")
        assert reply.status_code == 200, reply.text
        assert [frame.event for frame in stream][-1:] in ([], ["session.closed"]), "it ends"


def test_what_another_node_has_of_a_deleted_session_is_removed(cluster: Cluster) -> None:
    cluster.start("a", "b")
    gone, kept = cluster.apps["a"].session(), cluster.apps["a"].session()
    for session in (gone, kept):
        assert "wrote" in cluster.say("a", session, "write here.txt hello")

    def folders(session: str) -> list[Path]:
        return [path for path in everything_below(cluster.nodes["a"].data_dir, session) if path.is_dir()]

    until(lambda: len(folders(gone)) >= 2, "a workspace and a home")
    assert cluster.http("b").post(f"/sessions/{gone}/purge").status_code == 200

    def swept() -> bool:
        assert cluster.nodes["b"].admin().post("/admin/sweep").status_code == 200
        return not folders(gone)

    until(swept, "its folders at the other node are gone")
    assert len(folders(kept)) >= 2
    assert cluster.say("b", kept, "read here.txt") == "hello"


def test_a_pause_that_stops_reaches_runs_at_other_nodes(cluster: Cluster, tmp_path: Path) -> None:
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\nexec sleep 300\n")
    program.chmod(0o755)
    cluster.start("a", "b", CLAUDE_BIN=str(program), SANDBOX="off")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(cluster.http("a").post, "/run", json={"prompt": "hi"}, timeout=60)
        until(lambda: any((cluster.nodes["a"].data_dir / "runs").glob("*/work")), "the run has begun")
        reply = cluster.nodes["b"].admin().post("/admin/pause", json={"stop": True})
        assert reply.status_code == 200, reply.text
        ended = running.result(30)
    assert (ended.status_code, ended.json()["code"]) == (503, "paused")


def test_a_code_that_was_made_at_one_node_logs_in_at_another_once(cluster: Cluster) -> None:
    cluster.start("a", "b")
    code = cluster.http("a").post("/login/codes", json={}).json()["code"]
    stranger = cluster.nodes["b"].client()
    assert stranger.post("/login", json={"code": code}).status_code == 200
    for node in ("a", "b"):
        used = cluster.nodes[node].client().post("/login", json={"code": code})
        assert used.status_code == 401, used.text
