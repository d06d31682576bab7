"""Soak: many turns under a low limit of descriptors; memory, descriptors and bytes per turn stay level."""

import asyncio
import statistics
from dataclasses import dataclass

from proofs.kit.client import Client
from proofs.kit.report import Run
from proofs.kit.server import Server, zygote

SHORT, FULL = 120, 20_000
SESSIONS = 8
NOFILE = 256
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Sample:
    turns: int
    rss: int
    fds: int
    disk: int


def prove(run: Run) -> None:
    env = {"CLAWDFORGE_HOME_COPIES": "3"}
    with (
        zygote(run.source) as made,
        Server(run.folder, made, source=run.source, env=env, nofile=NOFILE) as server,
    ):
        server.start()
        samples = asyncio.run(_turns(run, server))
    _judge(run, samples)


async def _turns(run: Run, server: Server) -> list[Sample]:
    client = Client(server.port, server.token())
    sessions = [await client.session(retention="keep") for _ in range(SESSIONS)]
    samples: list[Sample] = []
    numbers = iter(range(1, run.size + 1))
    every = max(20, run.size // 60)

    async def work(number: int) -> None:
        for turn in numbers:
            reply = await client.repeat(
                "POST",
                f"/sessions/{sessions[number]}/turn",
                {"prompt": f"chunks 5 20\necho {turn}"},
                f"k{turn}",
            )
            if reply["outcome"] != "completed":
                run.violate(f"turn {turn} ended {reply['outcome']}")
            if turn % every == 0:
                samples.append(_sample(server, turn))
                run.progress(
                    f"{turn} of {run.size} turns, {samples[-1].rss // MIB} MiB, {samples[-1].fds} open"
                )

    await asyncio.gather(*(work(number) for number in range(SESSIONS)))
    return samples


def _sample(server: Server, turns: int) -> Sample:
    disk = sum(path.stat().st_blocks * 512 for path in server.data_dir.glob("forge.db*"))
    return Sample(turns, server.rss(), server.fds(), disk)


def _judge(run: Run, samples: list[Sample]) -> None:
    """Only the second half counts: caches fill in the first."""
    late = sorted(samples, key=lambda sample: sample.turns)[len(samples) // 2 :]
    turns = [sample.turns / 1000 for sample in late]
    memory = statistics.linear_regression(turns, [sample.rss / MIB for sample in late]).slope
    open_ = statistics.linear_regression(turns, [float(sample.fds) for sample in late]).slope
    if not run.short:
        run.check(memory < 2.0, f"memory grows by {memory:.2f} MiB for each 1,000 turns")
        run.check(abs(open_) < 1.0, f"descriptors grow by {open_:.2f} for each 1,000 turns")
    most = max(sample.fds for sample in samples)
    run.check(most < NOFILE * 0.8, f"{most} descriptors were open, of {NOFILE}")
    first, last = late[0], late[-1]
    run.figure(
        turns=run.size,
        limit_of_descriptors=NOFILE,
        memory_mib=f"{first.rss // MIB} → {last.rss // MIB}",
        memory_mib_per_1000_turns=round(memory, 2),
        descriptors=f"{first.fds} → {last.fds}, at most {most}",
        store_bytes_per_turn=(last.disk - first.disk) // max(1, last.turns - first.turns),
    )
