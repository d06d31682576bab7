"""How long a turn takes: through the server, over a bare pipe, through acpx, and the disk's own floor.

    .venv/bin/python -m bench.turn [--turns 300] [--chunks 100000] [--no-acpx]
    .venv/bin/python -m bench.turn --other DIR [--sessions 1] [--blocks 30]

All in one run, with the same scripted agent. `acpx` is installed beside the other peers with a Node that
it accepts; where that cannot be done, its row says so. Beside the time stands what the server's
processor had to do; and at the end what one turn takes in exact numbers, whatever else the machine does.
With `--other`, a checkout of another version, only the turn is measured, at both in alternating blocks.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import httpx2

from bench.beside import PLENTY, cost_turns, show_costs, show_heads
from bench.counted import NAMES, read_counts
from bench.kit import count_system_calls, cpu_secs, describe_here, new_session, server
from bench.peers.kit import program_of
from clawdforge.scripted import command as agent_command
from proofs.kit.report import commit
from tests.live.installing import Unavailable, folder, install, search_path

PAUSE = 0.05
COUNTED = 50
WARM = 40  # until copies of the home are pruned, now and then, as they always are
SETTLED = 1.0
FORMS = ("nested", "compact")
T = TypeVar("T")
ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=300)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--no-acpx", action="store_true")
    parser.add_argument("--other", type=Path)
    parser.add_argument("--sessions", default="1")
    parser.add_argument("--blocks", type=int, default=30)
    args = parser.parse_args()
    if args.other is not None:
        compare(args.other.resolve(), [int(part) for part in args.sessions.split(",")], args.blocks)
        return
    with tempfile.TemporaryDirectory(prefix="clawdforge-bench-") as folder:
        base = Path(folder)
        floor = fsync_floor(base, args.turns)
        pipe = bare_pipe(base, args.turns)
        with server(base / "data") as (http, pid):
            served, served_cpu = with_cpu(pid, lambda: http_turns(http, args.turns))
            spaced, spaced_cpu = with_cpu(pid, lambda: http_turns(http, args.turns, pause=PAUSE))
            streamed = {form: with_cpu(pid, partial(sse_chunks, http, args.chunks, form)) for form in FORMS}
        counts = count_turns(base, COUNTED)
        row("fsync floor: append 300 bytes, fdatasync", floor)
        row("the same agent over a bare pipe", pipe)
        row("a turn through the server over HTTP, durable", spaced)
        over = statistics.median(spaced) - statistics.median(floor)
        print(f"{'over the floor, p50':46} {over * 1e3:9.2f} ms")
        row("the same without a pause between two", served)
        print(
            f"{'CPU of a turn, paced / without a pause':46} {spaced_cpu / args.turns * 1e3:9.2f} ms", end=""
        )
        print(f" / {served_cpu / args.turns * 1e3:.2f} ms")
        for form, (rate, cpu) in streamed.items():
            print(f"{f'chunks per second, agent to a reader, {form}':46} {rate:9.0f}", end="")
            print(f"   {cpu / args.chunks * 1e6:.1f} us of CPU each")
        for name, count in counts.items():
            print(f"{f'{name} of a turn':46} {count:9.1f}")
        if args.no_acpx:
            return
        times = acpx_turns(base, min(args.turns, 10))
        if isinstance(times, str):
            print(f"{'acpx prompt, warm':46} left out: {times}")
        else:
            row("acpx prompt, warm", times)
            print(f"{'acpx to server, p50':46} {statistics.median(times) / statistics.median(served):9.0f} x")


def compare(other: Path, counts: Sequence[int], blocks: int) -> None:
    """The same turn by the version of another checkout and by this one."""
    print(describe_here())
    print(f"before: {commit(other)} of {other}")
    quiet = {"CLAWDFORGE_LOG_LEVEL": "error", **PLENTY}
    show_heads("before", "now")
    with (
        tempfile.TemporaryDirectory(prefix="clawdforge-bench-") as folder,
        server(Path(folder) / "before", PYTHONPATH=str(other / "src"), **quiet) as before,
        server(Path(folder) / "now", PYTHONPATH=str(ROOT / "src"), **quiet) as now,
    ):
        for sessions in counts:
            found = cost_turns({"before": before, "now": now}, sessions, blocks)
            show_costs(f"{sessions} session(s)", found["before"], found["now"], "≤ 1.02")
    print(f"load at the end {os.getloadavg()[0]:.1f}")


def with_cpu(pid: int, work: Callable[[], T]) -> tuple[T, float]:
    """What work returns, and the processor time that the server spent meanwhile."""
    before = cpu_secs(pid)
    result = work()
    return result, cpu_secs(pid) - before


def count_turns(base: Path, turns: int) -> dict[str, float]:
    """What one turn takes, of statements and the like; of system calls where strace can be used."""
    tally = base / "counts"
    with server(base / "counted", ("bench.counted", str(tally))) as (http, pid):
        path = f"/sessions/{new_session(http)}/turn"

        def prompt() -> None:
            assert http.post(path, json={"prompt": "echo hello"}).status_code == 200
            time.sleep(PAUSE)

        for _ in range(WARM):
            prompt()
        time.sleep(SETTLED)
        before = read_counts(tally)
        for _ in range(turns):
            prompt()
        time.sleep(SETTLED)
        after = read_counts(tally)
        calls = count_system_calls(pid, partial(time_calls, prompt, turns))
    found = {name: (after[name] - before[name]) / turns for name in NAMES}
    if calls is not None:
        found["system calls"] = sum(calls.values()) / turns
        most = sorted(calls, key=lambda name: -calls[name])
        found |= {f"  {name}": calls[name] / turns for name in most[:12]}
    return found


def row(name: str, times: list[float]) -> None:
    ordered = sorted(times)
    p50, p99 = statistics.median(ordered), ordered[int(len(ordered) * 0.99)]
    print(f"{name:46} {p50 * 1e3:9.2f} ms p50 {p99 * 1e3:9.2f} ms p99   n={len(ordered)}")


def time_calls(call: Callable[[], Any], count: int, pause: float = 0.0) -> list[float]:
    times = []
    for _ in range(count):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
        time.sleep(pause)
    return times


def fsync_floor(base: Path, count: int) -> list[float]:
    handle = os.open(base / "floor", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def once() -> None:
        os.write(handle, b"x" * 300)
        os.fdatasync(handle)

    try:
        return time_calls(once, count)
    finally:
        os.close(handle)


def bare_pipe(base: Path, count: int) -> list[float]:
    home = base / "home"
    home.mkdir()
    with subprocess.Popen(
        agent_command(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"HOME": str(home), "PATH": os.defpath},
    ) as agent:
        ids = iter(range(1, 1_000_000))

        def call(method: str, params: dict[str, Any]) -> dict[str, Any]:
            assert agent.stdin
            assert agent.stdout
            number = next(ids)
            line = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            agent.stdin.write(json.dumps(line).encode() + b"\n")
            agent.stdin.flush()
            while True:
                reply: dict[str, Any] = json.loads(agent.stdout.readline())
                if reply.get("id") == number:
                    return dict(reply["result"])

        call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        session = call("session/new", {"cwd": str(base), "mcpServers": []})["sessionId"]
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "echo hello"}]}
        times = time_calls(lambda: call("session/prompt", prompt), count)
        agent.kill()
        return times


def http_turns(http: httpx2.Client, count: int, pause: float = 0.0) -> list[float]:
    """Without a pause, a turn waits for the copy of the agent's home after the one before it."""
    path = f"/sessions/{new_session(http)}/turn"

    def once() -> None:
        reply = http.post(path, json={"prompt": "echo hello"})
        assert reply.status_code == 200, reply.text

    once()
    return time_calls(once, count, pause)


def sse_chunks(http: httpx2.Client, count: int, form: str) -> float:
    session = new_session(http)
    http.post(f"/sessions/{session}/turn", json={"prompt": "echo warm"})
    head = http.get(f"/sessions/{session}").json()["head"]
    accept, params = {"Accept": "text/event-stream"}, {"after": head, "form": form}
    with http.stream("GET", f"/sessions/{session}/events", params=params, headers=accept) as stream:
        http.post(f"/sessions/{session}/turns", json={"prompt": f"chunks {count}"})
        start, seen, tail = 0.0, 0, b""
        for chunk in stream.iter_raw():
            start = start or time.perf_counter()
            seen += chunk.count(b"event: text\n")
            tail = (tail + chunk)[-4096:]
            if b"event: turn.ended" in tail:
                break
        return seen / (time.perf_counter() - start)


def acpx_turns(base: Path, count: int) -> list[float] | str:
    """Warm `acpx prompt` calls, or why there are none."""
    program = program_of("acpx")
    try:
        install(program)
    except (Unavailable, OSError, subprocess.TimeoutExpired) as reason:
        return str(reason)
    home = base / "acpx-home"
    home.mkdir()
    env = {"PATH": search_path(program), "HOME": str(home), "TERM": "dumb"}
    agent = " ".join(agent_command())
    acpx = [str(folder(program) / program.program), "--agent", agent, "--cwd", str(base), "--approve-all"]

    def call(*words: str) -> None:
        subprocess.run([*acpx, *words], env=env, check=True, capture_output=True, timeout=120)

    try:
        call("sessions", "new", "--name", "bench")
        call("prompt", "-s", "bench", "echo hello")
        times = time_calls(lambda: call("prompt", "-s", "bench", "echo hello"), count)
        call("sessions", "close", "bench")
    except (subprocess.SubprocessError, OSError) as error:
        detail = getattr(error, "stderr", b"") or b""
        return f"{error} {detail.decode(errors='replace')[-300:]}"
    return times


if __name__ == "__main__":
    main()
