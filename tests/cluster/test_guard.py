"""A server that is stopped cannot end its agents: its guard does, before another node takes over."""

import os
import select
import signal
import threading
import time
from pathlib import Path

import pytest

from clawdforge.drivers.processes.guard import SPAWN
from clawdforge.drivers.processes.survivors import find_tagged, folder_id
from tests.api.harness import Server, until
from tests.cluster.kit import TALKS_ON, Cluster, guards
from tests.needs import needs

pytestmark = [needs("postgres"), pytest.mark.usefixtures("mortal")]
LONG_LEASE = "6"  # so that what lies between the end of an agent and a takeover can be seen on a busy machine


def agents(server: Server) -> set[int]:
    folder = folder_id(server.data_dir)
    return set(find_tagged(lambda tag: tag.folder == folder and tag.spawn != SPAWN))


class Deaths:
    """Notes when the last of some processes has ended."""

    def __init__(self, pids: set[int]) -> None:
        self.at: float | None = None
        self._fds = [os.pidfd_open(pid) for pid in pids]
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        for fd in self._fds:
            if not select.select([fd], [], [], 60)[0]:
                return
        self.at = time.time()

    def wait(self) -> float:
        self._thread.join(70)
        assert self.at is not None, "they live"
        for fd in self._fds:
            os.close(fd)
        return self.at


def test_the_agents_of_a_stopped_server_are_gone_before_another_takes_over(cluster: Cluster) -> None:
    cluster.start("a", "b", LEASE_SECS=LONG_LEASE)
    session, other = cluster.apps["a"].session(), cluster.apps["b"].session()
    cluster.submit("a", session, TALKS_ON)
    cluster.submit("b", other, "echo here\nsleep 60")
    cluster.wait_for("b", session, "text")
    cluster.wait_for("b", other, "text")
    alive, elsewhere = agents(cluster.nodes["a"]), agents(cluster.nodes["b"])
    assert alive
    assert elsewhere
    deaths = Deaths(alive)
    cluster.nodes["a"].process.send_signal(signal.SIGSTOP)
    died_at = deaths.wait()
    cluster.ended("b", session, 1)
    ((taken_at,),) = cluster.query("SELECT ended_at FROM turns WHERE session_id = $1", session)
    assert died_at < taken_at / 1_000_000, "the agent was still there when its session was another's"
    assert agents(cluster.nodes["b"]) == elsewhere, "those of others are left alone"
    before = cluster.said("b", session)
    assert cluster.say("b", session, "echo at b") == "at b"
    cluster.nodes["a"].process.send_signal(signal.SIGCONT)
    # Postgres has ended its connections: the first who writes may be told that, and to come again.
    until(
        lambda: cluster.http("a").post("/sessions", json={"agent": "claude"}).status_code == 200, "it writes"
    )
    assert cluster.say("a", session, "echo at a too") == "at a too"
    assert cluster.said("b", session) == [*before, "at b", "at a too"]
    assert cluster.say("a", cluster.apps["a"].session(), "echo a runs turns") == "a runs turns"
    cluster.check_log("b", session)


@pytest.mark.parametrize("sandbox", ["auto", "off"])
def test_a_lone_server_that_was_stopped_interrupts_its_turns_and_goes_on(
    cluster: Cluster, sandbox: str
) -> None:
    """Another might have come meanwhile. The end of the agent is not the agent's failure."""
    cluster.start("a", SANDBOX=sandbox)
    session = cluster.apps["a"].session()
    cluster.submit("a", session, "echo before\nsleep 60")
    cluster.wait_for("a", session, "text")
    deaths = Deaths(agents(cluster.nodes["a"]))
    cluster.nodes["a"].process.send_signal(signal.SIGSTOP)
    deaths.wait()
    cluster.nodes["a"].process.send_signal(signal.SIGCONT)
    assert cluster.ended("a", session, 1)["outcome"] == "interrupted"
    assert cluster.say("a", session, "echo on") == "on"
    assert "stood still" in cluster.nodes["a"].log_text
    cluster.check_log("a", session)


def test_a_guard_ends_with_its_server_and_is_replaced_when_it_is_gone(cluster: Cluster) -> None:
    cluster.start("a")
    server = cluster.nodes["a"]
    (first,) = until(lambda: guards(server), "a guard")
    assert b"DATABASE" not in Path(f"/proc/{first}/environ").read_bytes(), "agents may read it"
    os.kill(first, signal.SIGKILL)
    (second,) = until(lambda: guards(server) - {first}, "another guard")
    os.kill(second, signal.SIGSTOP)  # it hears nothing, and is not replaced before its pipe is full
    server.stop()
    assert not guards(server), "it did not outlive a server that ended by itself"
    cluster.start("a")
    until(lambda: guards(cluster.nodes["a"]), "a guard")
    cluster.nodes["a"].stop(signal.SIGKILL)
    until(lambda: not guards(cluster.nodes["a"]), "nor one that was killed")
