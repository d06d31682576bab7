"""The guard of agents: whom it ends, and whom it leaves alone."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from clawdforge.drivers.processes import guard
from clawdforge.drivers.processes.guard import Signs, end_agents, find_orphans
from clawdforge.drivers.processes.guarding import PACKAGES, PROGRAM
from clawdforge.drivers.processes.survivors import TAG, Tag, find_tagged

SLEEP = (sys.executable, "-I", "-S", "-c", "import time; print(flush=True); time.sleep(60)")
SERVER = """
import os, subprocess, sys, time
python, path, program = sys.argv[1:]
sleep = [python, "-I", "-S", "-c", "import time; time.sleep(60)"]
orphan = subprocess.Popen(sleep, env={}, start_new_session=True)
words = [python, "-S", "-P", "-m", program, "f", "no such boot", str(os.getpid())]
env = {"PYTHONPATH": path, "CLAWDFORGE_TAG": "f:no such boot:none:guard"}
guard = subprocess.Popen(words, stdin=subprocess.PIPE, bufsize=0, env=env, start_new_session=True)
guard.stdin.write(b"%f\\n" % (time.monotonic() + 2))
time.sleep(0.1)
print(orphan.poll())
print(orphan.wait(30))
guard.stdin.close()
print(guard.wait(30))
"""
"""Has an orphan and a guard, which is told of it for two seconds."""


@contextmanager
def running(tag: Tag | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A child of ours in a session of its own, as agents and what they leave are."""
    env = {} if tag is None else {TAG: str(tag)}
    with subprocess.Popen(SLEEP, env=env, stdout=subprocess.PIPE, start_new_session=True) as child:
        assert child.stdout is not None
        child.stdout.readline()
        try:
            yield child
        finally:
            child.kill()


def signs_that_are_late() -> Signs:
    reading, writing = os.pipe()
    os.write(writing, f"{time.monotonic() - 1}\n".encode())
    signs = Signs(reading)
    assert signs.wait()
    return signs


def test_agents_of_this_boot_are_ended_and_others_are_not() -> None:
    mine, others = Tag("f", "this boot", "s", "1"), Tag("f", "another", "s", "1")
    with running(mine) as agent, running(others) as other:
        end_agents("f", "this boot", os.getpid(), signs_that_are_late())
        assert agent.wait(10) < 0
        assert other.poll() is None


def test_children_of_a_process_that_is_not_our_parent_are_left_alone() -> None:
    """When the server is dead its number may be another's, such as that of whoever reaps all orphans."""
    with running() as innocent:
        assert find_orphans(os.getpid()) == []
        end_agents("f", "this boot", os.getpid(), signs_that_are_late())
        assert innocent.poll() is None


def test_what_a_server_has_adopted_is_ended_when_time_is_up() -> None:
    """With a process of its own as the server: its other children are not those of a test run."""
    words = (sys.executable, "-I", "-S", "-c", SERVER, sys.executable, str(PACKAGES), PROGRAM)
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == ["None", "-9", "0"], done.stderr


def test_a_sign_that_was_heard_while_agents_were_ended_is_not_forgotten() -> None:
    """Until the next one there would be no guard."""
    reader, writer = os.pipe()
    signs = Signs(reader)
    try:
        os.write(writer, b"%f\n" % (time.monotonic() - 1))
        assert signs.wait()
        os.write(writer, b"%f\n" % (time.monotonic() + 60))
        assert not signs.wait(within=0)
        signs.forget()
        assert signs._ends_at is not None
        os.write(writer, b"%f\n" % (time.monotonic() - 1))
        assert signs.wait()
        signs.forget()
        assert signs._ends_at is None
    finally:
        os.close(reader)
        os.close(writer)


def test_an_agent_that_was_started_after_a_new_sign_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine the look for agents takes long enough for the server to come back and start one."""
    reading, writing = os.pipe()
    os.write(writing, f"{time.monotonic() - 1}\n".encode())
    signs = Signs(reading)
    assert signs.wait()

    def look_slowly(fits: Callable[[Tag], bool]) -> dict[int, Tag]:
        found = find_tagged(fits)
        os.write(writing, f"{time.monotonic() + 60}\n".encode())
        return found

    ended: list[int] = []
    monkeypatch.setattr(guard, "find_tagged", look_slowly)
    monkeypatch.setattr(guard, "kill_below", ended.append)
    with running(Tag("f", "this boot", "s", "1")) as agent:
        end_agents("f", "this boot", os.getpid(), signs)
        assert (ended, agent.poll()) == ([], None)
