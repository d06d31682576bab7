"""A node that drains begins no turns, and leaves its sessions to others, each at its boundary."""

import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from tests.api.harness import ADMIN_TOKEN, Server, until
from tests.cluster.kit import Cluster
from tests.needs import needs

pytestmark = needs("postgres")


def find(cluster: Cluster, node: str, asked: str) -> dict[str, Any]:
    """What `asked` knows of a node."""
    port = cluster.nodes[node].url.rpartition(":")[2]
    found = cluster.nodes[asked].admin().get("/admin/nodes").json()["nodes"]
    return next(one for one in found if one["name"].endswith(f":{port}"))


def drain(cluster: Cluster, node: str, asked: str) -> dict[str, Any]:
    path = f"/admin/nodes/{find(cluster, node, asked)['node']}/drain"
    reply = cluster.nodes[asked].admin().post(path)
    assert reply.status_code == 200, reply.text
    changed: dict[str, Any] = reply.json()["node"]
    return changed


def command(server: Server, *words: str) -> subprocess.CompletedProcess[str]:
    given = [sys.executable, "-m", "clawdforge", *words, "--server", server.url]
    env = {**os.environ, "CLAWDFORGE_ADMIN_TOKEN": ADMIN_TOKEN}
    return subprocess.run(given, env=env, capture_output=True, text=True, timeout=60, check=False)


def test_what_runs_is_finished_and_what_waits_is_run_elsewhere(cluster: Cluster) -> None:
    cluster.start("a", "b")
    session = cluster.apps["a"].session()
    first = cluster.submit("a", session, "echo before\nsleep 2\necho after")
    cluster.wait_for("b", session, "text")
    waits = cluster.submit("b", session, "echo elsewhere")
    assert drain(cluster, "a", "b")["state"] == "draining"
    assert cluster.ended("b", session, first)["outcome"] == "completed", "it was not cut off"
    assert cluster.ended("b", session, waits)["outcome"] == "completed"
    until(lambda: find(cluster, "a", "b")["is_drained"], "nothing is left")
    until(lambda: find(cluster, "b", "a")["sessions"] == 1, "the other one holds it")
    cluster.check_log("b", session)


def test_a_node_that_drains_answers_and_has_others_run_what_is_asked(cluster: Cluster) -> None:
    cluster.start("a", "b")
    idle, new = cluster.apps["a"].session(), cluster.apps["a"].session()
    assert cluster.say("a", idle, "count") == "turn=1"
    drain(cluster, "a", "a")
    until(lambda: find(cluster, "a", "a")["is_drained"], "an idle agent is let go")
    assert cluster.say("a", idle, "echo still answered") == "still answered"
    assert cluster.say("a", new, "echo the first one too") == "the first one too"
    assert cluster.http("a").post(f"/sessions/{idle}/undo", json={}).status_code == 200
    until(lambda: find(cluster, "a", "b")["is_drained"], "a change of history is left too")
    assert find(cluster, "b", "b")["sessions"] >= 1
    ready = cluster.http("a").get("/readyz")
    assert (ready.status_code, ready.json()["reason"]) == (503, "draining")
    assert cluster.http("a").get("/healthz").status_code == 200
    assert cluster.http("b").get("/readyz").status_code == 200
    for session in (idle, new):
        cluster.check_log("b", session)


def test_a_drain_is_undone(cluster: Cluster) -> None:
    cluster.start("a", "b")
    changed = drain(cluster, "a", "b")
    until(lambda: cluster.http("a").get("/readyz").status_code == 503, "it has heard of it")
    reply = cluster.nodes["b"].admin().delete(f"/admin/nodes/{changed['node']}/drain")
    assert reply.json()["node"]["state"] == "up"
    until(lambda: cluster.http("a").get("/readyz").status_code == 200, "it has heard of that as well")
    session = cluster.apps["a"].session()
    assert cluster.say("a", session, "echo here") == "here"
    assert find(cluster, "a", "b")["sessions"] == 1


@pytest.mark.usefixtures("mortal")
def test_the_last_one_is_not_drained_and_runs_turns_when_the_others_are_gone(cluster: Cluster) -> None:
    cluster.start("a", "b")
    drain(cluster, "a", "b")
    other = find(cluster, "b", "b")["node"]
    refused = cluster.nodes["b"].admin().post(f"/admin/nodes/{other}/drain")
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    unknown = cluster.nodes["b"].admin().post("/admin/nodes/nobody/drain")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "node_not_found")
    until(lambda: cluster.http("a").get("/readyz").status_code == 503, "it has heard of it")
    cluster.nodes["b"].stop(signal.SIGKILL)
    session = cluster.apps["a"].session()
    assert cluster.say("a", session, "echo nobody else is there") == "nobody else is there"
    assert cluster.http("a").get("/readyz").status_code == 200


def test_a_node_that_is_stopped_hands_over_what_waits_before_it_ends(cluster: Cluster) -> None:
    """Its queue used to wait until it had ended: now it runs elsewhere while another turn is finished."""
    cluster.start("a", "b", STOP_GRACE_SECS="30")
    busy, idle = cluster.apps["a"].session(), cluster.apps["a"].session()
    assert cluster.say("a", idle, "count") == "turn=1"
    first = cluster.submit("a", busy, "echo before\nsleep 60")
    cluster.wait_for("b", busy, "text")
    cluster.nodes["a"].process.send_signal(signal.SIGTERM)
    until(lambda: find(cluster, "a", "b")["sessions"] == 1, "the idle one is left")
    assert cluster.say("b", idle, "echo at b") == "at b"
    assert cluster.nodes["a"].process.poll() is None, "it still finishes its turn"
    assert cluster.turns("b", busy)[first - 1]["state"] == "running"
    assert cluster.http("b").post(f"/sessions/{busy}/cancel", json={}).status_code == 200
    assert cluster.nodes["a"].process.wait(20) == 0
    assert cluster.say("b", busy, "echo at b too") == "at b too"
    for session in (busy, idle):
        cluster.check_log("b", session)


def test_the_command_waits_and_says_what_is_left(cluster: Cluster) -> None:
    cluster.start("a", "b")
    session = cluster.apps["a"].session()
    cluster.submit("a", session, "echo before\nsleep 60")
    cluster.wait_for("b", session, "text")
    name = find(cluster, "a", "b")["name"]
    late = command(cluster.nodes["b"], "drain", name, "--wait", "--timeout", "0.1")
    assert late.returncode == 1
    assert f"{name} is draining: it holds 1 session, and 1 turn runs in them" in late.stderr
    assert cluster.http("b").post(f"/sessions/{session}/cancel", json={}).status_code == 200
    done = command(cluster.nodes["b"], "drain", name, "--wait")
    assert (done.returncode, "is drained: nothing is left there" in done.stderr) == (0, True), done.stderr
    assert "drained" in command(cluster.nodes["b"], "nodes").stdout
    undone = command(cluster.nodes["b"], "drain", "--undo", name)
    assert (undone.returncode, "begins turns again" in undone.stderr) == (0, True), undone.stderr
    assert find(cluster, "a", "b")["state"] == "up"
