"""Coming back to a session: after a sleep, after a crash, in a home that was put back or copied."""

import contextlib
import json
import os
import shutil
import signal

from clawdforge.core.ports import Capability
from tests.conformance.drivers.bench import DriverBench, Notebook, say


async def test_an_agent_that_slept_knows_what_was_said(bench: DriverBench) -> None:
    async with bench.opened() as live:
        assert (live.how, live.remembered) == ("new", [])
        await say(live, "echo first")
        await say(live, "echo second")
        wanted = live.agent_session_id
    async with bench.opened(agent_session_id=wanted) as live:
        if Capability.RETURN not in bench.capabilities:
            assert live.how == "new"
            return
        assert live.how in ("loaded", "resumed")
        assert live.agent_session_id == wanted
        knows = ["echo first", "echo second"]
        assert live.remembered == (knows if Capability.EVIDENCE in bench.capabilities else None)
        sink = await say(live, "recall")
        assert json.loads(sink.text()) == knows
        assert len(sink.events) == 2


async def test_what_a_return_replays_is_heard_by_nobody(bench: DriverBench) -> None:
    async with bench.opened() as live:
        await say(live, "echo once")
        wanted = live.agent_session_id
    bench.outside = Notebook()
    async with bench.opened(agent_session_id=wanted) as live:
        sink = await say(live, "echo twice")
    assert sink.texts() == ["twice"]
    assert bench.outside.text() == ""


async def test_an_agent_that_was_killed_comes_back(bench: DriverBench) -> None:
    async with bench.opened() as live:
        await say(live, "echo kept")
        wanted = live.agent_session_id
        for pid in bench.place.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await live.close()
    async with bench.opened(agent_session_id=wanted) as live:
        heard = json.loads((await say(live, "recall")).text())
    assert heard == (["echo kept"] if Capability.RETURN in bench.capabilities else [])


async def test_a_session_that_is_not_there_becomes_a_new_one(bench: DriverBench) -> None:
    async with bench.opened(agent_session_id="00000000-0000-4000-8000-000000000000") as live:
        assert (live.how, live.remembered) == ("new", [])
        assert (await say(live, "recall")).text() == "[]"


async def test_a_home_that_was_put_back_has_forgotten_what_came_after(bench: DriverBench) -> None:
    copy = bench.data / "copy"
    async with bench.opened() as live:
        await say(live, "echo stays")
        with live.pause():
            shutil.copytree(bench.place.home, copy, symlinks=True, ignore=_no_sockets)
        await say(live, "echo goes")
        wanted = live.agent_session_id
    shutil.rmtree(bench.place.home)
    copy.rename(bench.place.home)
    async with bench.opened(agent_session_id=wanted) as live:
        heard = json.loads((await say(live, "recall")).text())
    assert heard == (["echo stays"] if Capability.RETURN in bench.capabilities else [])


async def test_a_fork_goes_on_in_a_copy_of_the_home_beside_the_first(bench: DriverBench) -> None:
    fork = bench.new_place()
    shutil.rmtree(fork.home)
    async with bench.opened() as one:
        await say(one, "echo root")
        with one.pause():
            shutil.copytree(bench.place.home, fork.home, symlinks=True, ignore=_no_sockets)
        launched = {"agent_session_id": one.agent_session_id, "cwd": bench.place.workspace}
        async with bench.opened(fork, **launched) as two:
            if Capability.RETURN not in bench.capabilities:
                assert two.how == "new"
                return
            await say(two, "echo branch")
            assert json.loads((await say(two, "recall")).text()) == ["echo root", "echo branch"]
        assert json.loads((await say(one, "recall")).text()) == ["echo root"]


def _no_sockets(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if not os.path.isfile(p := f"{folder}/{name}") and not os.path.isdir(p)]  # noqa: PTH112, PTH113
