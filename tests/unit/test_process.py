"""Agent processes: streams, pause, and an end that leaves nothing behind."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from unittest import mock

import pytest

from clawdforge.drivers.processes.launcher import children
from clawdforge.drivers.processes.process import AgentProcess
from clawdforge.drivers.processes.tree import descendants, is_stopped, stop_tree
from clawdforge.wire.errors import AgentNotInstalled, AgentStartFailed, WorkspaceChanged
from tests.needs import needs
from tests.support.processes import state
from tests.unit.contained import LANDLOCK, SESSION, Bench, beats, bench_on, still, until

SERVER = """
import asyncio, os, sys
from pathlib import Path
from clawdforge.drivers.processes.containment import harden_self
sys.path.insert(0, sys.argv[3])
from tests.needs import needs
from tests.unit.contained import bench_on
async def main():
    harden_self()
    async with bench_on(Path(sys.argv[1]), sys.argv[2]) as bench:
        process = await bench.hostile()
        print("up", flush=True)
        if await asyncio.to_thread(sys.stdin.readline) == "kill the keeper\\n":
            os.kill(process.pid, 9)
            await process.wait()
            await process.close()
            print("closed", flush=True)
        await asyncio.sleep(600)
asyncio.run(main())
"""


@pytest.fixture(
    params=["tree", LANDLOCK, *(pytest.param(kind, marks=needs("bwrap")) for kind in ("bwrap", "bwrap-full"))]
)
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    async with bench_on(tmp_path, str(request.param)) as bench:
        yield bench


async def test_input_reaches_the_agent_and_its_output_comes_back(bench: Bench) -> None:
    process = await bench.spawn("cat")
    process.stdin.write(b"hello\n")
    await process.stdin.drain()
    assert await asyncio.wait_for(process.stdout.readline(), 60) == b"hello\n"
    await process.close()
    assert process.returncode == 0
    assert not bench.tagged()


async def test_an_end_that_failed_can_be_tried_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    process = await bench.spawn("sleep", "600")
    with monkeypatch.context() as patch:
        patch.setattr(process, "_wait_ended", mock.AsyncMock(side_effect=OSError(5, "no such luck")))
        with pytest.raises(OSError, match="no such luck"):
            await process.close()
    assert process.returncode is None
    await process.close()
    assert process.returncode is not None
    assert not bench.tagged()


async def test_an_exit_code_and_the_last_words_are_known(bench: Bench) -> None:
    process = await bench.spawn("sh", "-c", "echo oh no >&2; exit 7")
    assert await asyncio.wait_for(process.wait(), 60) == 7
    await process.close()
    assert process.stderr_tail() == "oh no\n"


async def test_a_signal_that_ends_the_agent_is_its_exit_code(bench: Bench) -> None:
    process = await bench.spawn("sh", "-c", "kill -9 $$")
    assert await asyncio.wait_for(process.wait(), 60) == 128 + signal.SIGKILL
    await process.close()


async def test_close_leaves_nothing_of_a_hostile_tree_and_is_bounded(bench: Bench) -> None:
    process = await bench.hostile()
    before = time.monotonic()
    await process.close(eof_grace=0.2, term_grace=0.2)
    took = time.monotonic() - before
    assert still(bench.workspace)
    assert not bench.tagged()
    assert took < 20


async def test_close_twice_and_after_the_end_is_harmless(bench: Bench) -> None:
    process = await bench.spawn("true")
    await process.wait()
    await asyncio.gather(process.close(), process.close())
    await process.close()
    assert process.returncode == 0


async def test_a_cancelled_close_still_leaves_nothing(bench: Bench) -> None:
    process = await bench.hostile()
    closing = asyncio.create_task(process.close(eof_grace=30, term_grace=30))
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(closing, 35)
    assert still(bench.workspace)
    assert not bench.tagged()


async def test_the_end_of_one_process_leaves_others_of_its_session_alone(bench: Bench) -> None:
    agent = await bench.spawn("cat")
    for _ in range(3):
        await (await bench.spawn("true")).close()
    agent.stdin.write(b"still here\n")
    assert await asyncio.wait_for(agent.stdout.readline(), 60) == b"still here\n"


async def test_what_the_agent_leaves_ends_with_it(bench: Bench) -> None:
    out = bench.workspace / "main"
    code = f"(setsid sh -c 'while :; do echo x >>{out}; sleep 0.01; done' &) ; sleep 0.1; exit 3"
    process = await bench.spawn("sh", "-c", code)
    assert await asyncio.wait_for(process.wait(), 60) == 3
    await process.close()
    assert out.exists()
    assert still(bench.workspace)
    assert not bench.tagged()


async def test_an_agent_that_ends_at_the_end_of_input_is_not_signalled(bench: Bench) -> None:
    process = await bench.spawn("sh", "-c", "trap 'echo TERM' TERM; cat >/dev/null; exit 5")
    await process.close(eof_grace=5)
    assert process.returncode == 5
    assert await process.stdout.read() == b""


async def test_an_agent_gets_sigterm_before_it_is_killed(bench: Bench) -> None:
    code = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\n"
        "print('up', flush=True)\n"
        "while True: time.sleep(1)"
    )
    process = await bench.spawn(sys.executable, "-c", code)
    assert await asyncio.wait_for(process.stdout.readline(), 60) == b"up\n"
    await process.close(eof_grace=0.05, term_grace=5)
    assert process.returncode == 9


async def test_fifty_megabytes_of_stderr_do_not_stop_stdout(bench: Bench) -> None:
    code = (
        "import sys\n"
        "for i in range(50):\n"
        "    sys.stderr.write('e' * 1_000_000); sys.stderr.flush(); print(i, flush=True)\n"
        "sys.stderr.write('the end'); print('done', flush=True)"
    )
    process = await bench.spawn(sys.executable, "-c", code)
    lines = (await asyncio.wait_for(process.stdout.read(), 30)).split()
    assert lines == [*(str(i).encode() for i in range(50)), b"done"]
    await process.close()
    assert process.stderr_tail().endswith("the end")
    assert len(process.stderr_tail()) <= 64 * 1024


async def test_an_agent_whose_output_nobody_reads_has_to_wait(bench: Bench) -> None:
    marker = bench.workspace / "written"
    code = (
        "import os\n"
        "total = 0\n"
        "while total < 64 << 20:\n"
        "    total += os.write(1, b'x' * 65536)\n"
        f"    open({str(marker)!r}, 'w').write(str(total))"
    )
    process = await bench.spawn(sys.executable, "-c", code)

    def size() -> int:
        with contextlib.suppress(OSError, ValueError):
            return int(marker.read_text())
        return 0

    def waits() -> bool:
        """It stands still because it waits, not because others have the processor."""
        before = size()
        return "R" not in map(state, bench.tagged()) and size() == before

    await until(lambda: size() > 500_000 and waits())
    assert size() < 2 << 20
    assert len(await asyncio.wait_for(process.stdout.readexactly(64 << 20), 30)) == 64 << 20
    assert await asyncio.wait_for(process.wait(), 60) == 0


async def test_a_line_of_four_megabytes_arrives_whole(bench: Bench) -> None:
    process = await bench.spawn(sys.executable, "-c", "print('y' * (4 << 20))")
    assert len(await asyncio.wait_for(process.stdout.read(-1), 60)) == (4 << 20) + 1


async def test_paused_stops_every_write_of_the_tree(bench: Bench) -> None:
    process = await bench.hostile()
    with process.pause():
        held = beats(bench.workspace)
        assert still(bench.workspace)
    await until(lambda: all(now > held[name] for name, now in beats(bench.workspace).items()))


async def test_a_pause_in_a_thread_bears_the_end_of_the_agent(bench: Bench) -> None:
    def pause(process: AgentProcess, closed: threading.Event) -> int:
        count = 0
        while not closed.is_set() or not count:
            with process.pause():
                count += 1
        return count

    for _ in range(5):
        process, closed = await bench.spawn("sh", "-c", "sleep 60 & sleep 60"), threading.Event()
        pausing = asyncio.create_task(asyncio.to_thread(pause, process, closed))
        await process.close(eof_grace=0.02, term_grace=0.02)
        closed.set()
        assert await asyncio.wait_for(pausing, 60)
    assert not bench.tagged()


def test_processes_of_a_stranger_with_the_same_number_are_not_stopped() -> None:
    """The number of a process that was reaped may be another's by now; its pidfd tells that it has ended."""
    with subprocess.Popen(["true"]) as gone:
        pidfd = os.pidfd_open(gone.pid)
    command = ["sh", "-c", "sleep 60 & echo up; wait"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as stranger:
        own = os.pidfd_open(stranger.pid)
        assert stranger.stdout is not None
        assert stranger.stdout.readline() == b"up\n"
        (below,) = children(stranger.pid)
        with stop_tree(stranger.pid, own):
            assert is_stopped(below)
        with stop_tree(stranger.pid, pidfd):
            assert not is_stopped(below)
        os.kill(below, signal.SIGKILL)
    os.close(own)
    os.close(pidfd)


async def test_a_program_that_is_not_there_says_what_to_do(bench: Bench) -> None:
    with pytest.raises(AgentNotInstalled, match="install it"):
        await bench.spawn("no-such-agent")
    assert not bench.tagged()


async def test_a_file_that_cannot_be_run_is_a_failed_start(bench: Bench) -> None:
    plain = bench.workspace / "plain"
    plain.write_text("x")
    with pytest.raises(AgentStartFailed, match=r"chmod \+x"):
        await bench.spawn(str(plain))
    script = bench.workspace / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    with pytest.raises(AgentStartFailed, match="interpreter is missing, or hidden from agents"):
        await bench.spawn(str(script))
    binary = bench.workspace / "binary"
    binary.write_bytes(b"\x7fELF nonsense")
    binary.chmod(0o755)
    with pytest.raises(AgentStartFailed, match="Exec format error"):
        await bench.spawn(str(binary))
    assert not bench.tagged()


async def test_a_missing_workspace_is_named(bench: Bench) -> None:
    bench.workspace.rmdir()
    with pytest.raises(WorkspaceChanged, match="does not exist"):
        await bench.spawn("true")


async def test_no_descriptor_is_left_open(bench: Bench) -> None:
    first = await bench.spawn("true")
    await first.close()

    def count() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = count()
    for _ in range(5):
        await (await bench.spawn("cat")).close()
    await until(lambda: count() <= before)
    assert not [pid for pid in children(os.getpid()) if pid in bench.spawner._living]


async def test_limits_hold_for_the_agent(bench: Bench) -> None:
    process = await bench.spawn("sh", "-c", "ulimit -c; ulimit -n; grep SigIgn /proc/self/status")
    core, files, ignored = (await asyncio.wait_for(process.stdout.read(), 60)).decode().splitlines()
    assert core == "0"
    assert int(files) <= 65_536
    assert int(ignored.split()[1], 16) & (1 << (signal.SIGPIPE - 1)) == 0


@contextlib.contextmanager
def server(root: Path, kind: str) -> Iterator[subprocess.Popen[bytes]]:
    """Another process with a hostile agent under it."""
    command = [sys.executable, "-c", SERVER, str(root), kind, str(Path(__file__).parents[2])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"up\n"
            yield process
        finally:
            process.kill()


async def test_an_agent_that_kills_its_keeper_still_ends_at_close(tmp_path: Path) -> None:
    with server(tmp_path, "tree") as process:
        tree = descendants(process.pid)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"kill the keeper\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"closed\n"
        assert not [pid for pid in tree if alive(pid)]
        assert children(process.pid) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tree", pytest.param("bwrap", marks=needs("bwrap"))])
async def test_nothing_outlives_a_server_that_is_killed(tmp_path: Path, kind: str) -> None:
    with server(tmp_path, kind) as process:
        tree = descendants(process.pid)
        assert len([pid for pid in tree if alive(pid)]) >= 6
        process.send_signal(signal.SIGKILL)
        process.wait()
    await until(lambda: not any(map(alive, tree)), 5)
    assert still(tmp_path / "data" / "workspaces" / SESSION)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
