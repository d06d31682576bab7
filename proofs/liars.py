"""Agents that lie: at every point of a turn they die, hang, garble, flood, fork; each turn ends once."""

import asyncio
import itertools
import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass

from proofs.kit.client import Client
from proofs.kit.report import Run
from proofs.kit.server import Server, Stuck, until, zygote

SHORT, FULL = 5, 200
GONE_WITHIN = 2.0
TIMEOUT = 2.0


@dataclass(frozen=True, slots=True)
class Lie:
    """`heals`: the same session runs a plain turn afterwards. `deaf`: a cancel has to end the process."""

    name: str
    prompt: str
    agent: str = "scripted"
    heals: bool = True
    deaf: bool = False


LIES = (
    Lie("exits when started", "echo x", "exits", heals=False),
    Lie("hangs when started", "echo x", "hangs", heals=False),
    Lie("garbage when started", "chunks 3 10 200", "garbles"),
    Lie("exits at the prompt", "crash 3"),
    Lie("exits with success at the prompt", "crash 0"),
    Lie("exits in the answer", "crash-after 3"),
    Lie("is killed in the answer", "chunks 3\nkill-self"),
    Lie("closes its output in the answer", "chunks 2\nclose-stdout\nhang"),
    Lie("garbage in the answer", "chunks 2\ngarbage 200\nhang"),
    Lie("no UTF-8", "bad-utf8\nsurrogate\nhang"),
    Lie("answers twice", "echo x\ndup-response\nsleep 0.5"),
    Lie("answers what was not asked", "wrong-id\nhang"),
    Lie("hangs before the answer", "hang"),
    Lie("hangs and ignores every signal", "hang-hard", deaf=True),
    Lie("ignores cancel and the end", "chunks 100 10 100", "ignores", deaf=True),
    Lie("floods", "flood 3000 3000\nhang"),
    Lie("one endless line", "bytes 40000000\nhang"),
    Lie("forks a daemon", "daemon\nhang"),
    Lie("forks a daemon and dies", "daemon\ncrash 1"),
    Lie("children hold the pipes", "children 3\ncrash 1"),
    Lie("floods stderr", "stderr 3000000\nhang"),
    Lie("speaks after the answer", "echo x\nsleep 0.5", "late"),
)
WAYS = ("let", "cancel", "close", "kill", "strike")
"""What ends a turn: itself, a client, the end of the server, or that of any one process of the agent."""


def prove(run: Run) -> None:
    env = {
        "CLAWDFORGE_AGENT_START_SECS": "3",
        "CLAWDFORGE_CANCEL_GRACE_SECS": "1",
        "CLAWDFORGE_MAX_LINE_BYTES": "8MiB",
        "CLAWDFORGE_MAX_TURN_BYTES": "32MiB",
    }
    with zygote(run.source) as made, Server(run.folder, made, source=run.source, env=env) as server:
        for name, flag in (
            ("exits", "--exit-at-start"),
            ("hangs", "--hang-at-start"),
            ("garbles", "--garbage-at-start"),
            ("ignores", "--ignore-cancel --ignore-term"),
            ("late", "--late-updates"),
        ):
            server.add_agent(name, flag)
        server.start()
        asyncio.run(_cases(run, server))


async def _cases(run: Run, server: Server) -> None:
    client = Client(server.port, server.token())
    cases = list(itertools.product(LIES, WAYS))
    run.random.shuffle(cases)
    outcomes: dict[str, int] = {}
    slowest = 0.0
    for number, (lie, way) in enumerate(itertools.islice(itertools.cycle(cases), run.size)):
        began = time.monotonic()
        outcome = await _case(run, server, client, lie, way)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        slowest = max(slowest, time.monotonic() - began)
        run.progress(f"{number + 1} of {run.size} lies")
    run.figure(
        lies=run.size,
        points=len(LIES),
        ways=", ".join(WAYS),
        outcomes=", ".join(f"{name} {count}" for name, count in sorted(outcomes.items())),
        slowest_case_secs=round(slowest, 1),
    )


async def _case(run: Run, server: Server, client: Client, lie: Lie, way: str) -> str:
    name = f"{lie.name}, {way}"
    session = await client.session(agent=lie.agent, retention="keep")
    path = f"/sessions/{session}"
    await client.submit(session, lie.prompt, "lie", timeout_secs=TIMEOUT)
    if way != "let":
        await asyncio.sleep(run.random.uniform(0.0, 0.6))
    if way == "cancel":
        await client.repeat("POST", f"{path}/cancel", {})
    elif way == "close":
        await client.call("DELETE", path)
    elif way == "kill":
        await asyncio.to_thread(server.kill)
        _no_survivor(run, server, name)
        await asyncio.to_thread(server.start)
    elif way == "strike":
        # As the kernel does when memory runs out: the sandbox, its first process, the agent …
        for pid in run.random.sample(found := server.agents(), min(1, len(found))):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    turns = await client.wait_ended(session, 20)
    if _may_live(lie, way):
        await client.repeat("DELETE", path)
    _no_survivor(run, server, name)
    events = await client.pages(f"{path}/events", "events")
    ends = [event for event in events if event["type"] == "turn.ended"]
    run.check(len(ends) == len(turns) == 1, f"{name}: {len(ends)} ends of {len(turns)} turns")
    seqs = [event["seq"] for event in events]
    run.check(seqs == list(range(1, len(seqs) + 1)), f"{name}: the log has gaps")
    await _usable(run, client, session, lie, way)
    return str(turns[0]["outcome"])


def _may_live(lie: Lie, way: str) -> bool:
    """Whether an agent may be there until its session is closed."""
    return way in ("let", "strike") or (way == "cancel" and not lie.deaf)


async def _usable(run: Run, client: Client, session: str, lie: Lie, way: str) -> None:
    """The session goes on, whatever its agent did."""
    path = f"/sessions/{session}"
    if way == "close" or _may_live(lie, way):
        await client.repeat("POST", f"{path}/reopen")
    await client.submit(session, "echo after all", "after", timeout_secs=20)
    turns = await client.wait_ended(session, 30)
    wanted = ("completed",) if lie.heals else ("failed",)
    run.check(turns[-1]["outcome"] in wanted, f"{lie.name}, {way}: afterwards {turns[-1]}")
    await client.call("DELETE", path)


def _no_survivor(run: Run, server: Server, name: str) -> None:
    try:
        until(lambda: not server.agents(), "the end of all processes", GONE_WITHIN)
    except Stuck:
        run.violate(f"{name}: {len(server.agents())} processes are left {GONE_WITHIN:g} s later")
