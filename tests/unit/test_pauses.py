"""Pauses that overlap, and terminals that come and go during one."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from clawdforge.drivers.acp.files import WorkspaceFiles
from clawdforge.drivers.acp.terminals import Terminals
from clawdforge.drivers.processes.process import AgentProcess
from clawdforge.drivers.processes.tree import descendants, is_stopped
from clawdforge.jsonrpc.rpc import RpcError
from clawdforge.wire.errors import AgentStartFailed
from tests.needs import needs
from tests.unit.contained import Bench, beats, bench_on, still, until


@pytest.fixture(
    params=["tree", *(pytest.param(kind, marks=needs("bwrap")) for kind in ("bwrap", "bwrap-full"))]
)
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    async with bench_on(tmp_path, str(request.param)) as bench:
        yield bench


async def test_two_pauses_at_once_end_with_the_last(bench: Bench) -> None:
    """Home and workspace are copied beside each other; the agent must not go on under either."""
    process = await bench.hostile()
    with contextlib.ExitStack() as second:
        with process.pause():
            second.enter_context(process.pause())
            held = beats(bench.workspace)
        assert still(bench.workspace)
        assert beats(bench.workspace) == held
    await until(lambda: all(now > held[name] for name, now in beats(bench.workspace).items()))


async def test_no_terminal_is_started_during_a_pause(tmp_path: Path) -> None:
    """It would write while home and workspace are copied."""
    async with bench_on(tmp_path, "tree") as bench:
        spawned: list[tuple[str, ...]] = []

        async def spawn(argv: tuple[str, ...]) -> AgentProcess:
            spawned.append(argv)
            return await bench.spawn(*argv)

        terminals = Terminals(spawn, WorkspaceFiles(bench.workspace, ()), bench.workspace)
        order = terminals.check_order({"command": "true"})
        with contextlib.ExitStack() as second:
            with terminals.pause():
                second.enter_context(terminals.pause())
                creating = [asyncio.create_task(terminals.create(order)) for _ in range(3)]
                await until(lambda: len(terminals._waiting) == 3)
            creating[0].cancel()
            await asyncio.wait({creating[0]})
            assert spawned == []
        await asyncio.gather(*creating[1:])
        assert len(spawned) == 2
        assert terminals._starting == 0
        await terminals.close()


async def test_terminals_may_come_and_go_during_a_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bench_on(tmp_path, "tree") as bench:

        async def spawn(argv: tuple[str, ...]) -> AgentProcess:
            return await bench.spawn(*argv)

        terminals = Terminals(spawn, WorkspaceFiles(bench.workspace, ()), bench.workspace)
        for _ in range(3):
            await terminals.create(terminals.check_order({"command": "exec sleep 60"}))
        first = terminals._find({"terminalId": "term_1"})[1].process
        real = first.pause
        entered, changed = threading.Event(), threading.Event()

        @contextlib.contextmanager
        def slowly() -> Iterator[None]:
            with real():
                entered.set()
                assert changed.wait(60)
                yield

        monkeypatch.setattr(first, "pause", slowly)

        def pause() -> None:
            with terminals.pause():
                pass

        pausing = asyncio.create_task(asyncio.to_thread(pause))
        await asyncio.to_thread(entered.wait, 10)
        await terminals.release({"terminalId": "term_3"})
        changed.set()
        await asyncio.wait_for(pausing, 60)
        await terminals.close()


async def test_a_terminal_that_waited_for_a_pause_waits_for_the_next_one_too(tmp_path: Path) -> None:
    async with bench_on(tmp_path, "tree") as bench:
        spawned: list[tuple[str, ...]] = []

        async def spawn(argv: tuple[str, ...]) -> AgentProcess:
            spawned.append(argv)
            return await bench.spawn(*argv)

        terminals = Terminals(spawn, WorkspaceFiles(bench.workspace, ()), bench.workspace)
        with terminals.pause():
            creating = asyncio.create_task(terminals.create(terminals.check_order({"command": "true"})))
            await until(lambda: bool(terminals._waiting))
        with terminals.pause():  # it has been woken, and could not run yet
            await until(lambda: bool(terminals._waiting or spawned))
            assert spawned == []
        await creating
        assert len(spawned) == 1
        await terminals.close()


async def test_a_pause_stops_a_terminal_that_is_just_being_started(tmp_path: Path) -> None:
    async with bench_on(tmp_path, "tree") as bench:
        running: list[AgentProcess] = []
        told = asyncio.Event()

        async def spawn(argv: tuple[str, ...]) -> AgentProcess:
            running.append(await bench.spawn(*argv))
            await told.wait()
            return running[0]

        terminals = Terminals(spawn, WorkspaceFiles(bench.workspace, ()), bench.workspace)
        order = terminals.check_order({"command": "exec sleep 60"})
        creating = asyncio.create_task(terminals.create(order))
        await until(lambda: bool(running))

        def pause() -> list[bool]:
            with terminals.pause():
                return [is_stopped(pid) for pid in descendants(running[0].pid)]

        pausing = asyncio.create_task(asyncio.to_thread(pause))
        await until(lambda: terminals._pauses == 1 or pausing.done())
        told.set()
        stopped = await pausing
        assert stopped
        assert all(stopped)
        await creating
        await terminals.close()


async def test_a_terminal_that_does_not_start_holds_no_pause_up(tmp_path: Path) -> None:
    async def spawn(argv: tuple[str, ...]) -> AgentProcess:
        raise AgentStartFailed(f"{argv[0]} does not start")

    terminals = Terminals(spawn, WorkspaceFiles(tmp_path, ()), tmp_path)
    with pytest.raises(RpcError, match="does not start"):
        await terminals.create(terminals.check_order({"command": "true"}))
    with terminals.pause():
        assert terminals._spawning == 0


async def test_a_turn_that_is_cancelled_during_a_pause_leaves_no_terminal(tmp_path: Path) -> None:
    async with bench_on(tmp_path, "tree") as bench:

        async def spawn(argv: tuple[str, ...]) -> AgentProcess:
            return await bench.spawn(*argv)

        terminals = Terminals(spawn, WorkspaceFiles(bench.workspace, ()), bench.workspace)
        order = terminals.check_order({"command": "exec sleep 60"})
        with terminals.pause():
            creating = asyncio.create_task(terminals.create(order))
            await until(lambda: bool(terminals._waiting))
            await terminals.end_all()
        with pytest.raises(RpcError, match="was cancelled"):
            await creating
        assert bench.tagged() == []
        await terminals.close()
