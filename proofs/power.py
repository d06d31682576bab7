"""Power loss: the disk as it could be at every answer, opened and compared with what had been answered."""

import asyncio
import os
import re
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from clawdforge.stores.sqlite.packs import unpack
from proofs.kit.client import Client, Reader
from proofs.kit.disk import STRACE, Disk, read_log
from proofs.kit.report import Run
from proofs.kit.server import Server, Zygote, zygote
from proofs.kit.source import NORMAL, plant

SHORT, FULL = 120, 5000
KINDS = ("durable", "subset", "subset", "torn", "torn", "all")
TURNS = "SELECT session_id, turn_index, prompt FROM turns"
FILES = ("forge.db", "forge.db-wal", "forge.db-journal")
TURN = re.compile(rb'"session_id":"([0-9a-f-]{36})","turn_index":(\d+),"state"')
EVENT = re.compile(rb'data: (\{"seq":[^\n]*)\n')
SERVED_STATES = 3
FAILING = ("-e", "inject=fdatasync:error=EIO:when=25+11")


@dataclass
class Answered:
    """What the server had told somebody, read from its own calls on sockets."""

    turns: dict[tuple[str, int], str] = field(default_factory=dict)
    events: set[bytes] = field(default_factory=set)

    def hear(self, data: bytes, prompts: dict[tuple[str, int], str]) -> bool:
        before = len(self.turns) + len(self.events)
        for session, number in TURN.findall(data):
            key = (session.decode(), int(number))
            self.turns[key] = prompts[key]
        self.events.update(EVENT.findall(data))
        return len(self.turns) + len(self.events) > before


def prove(run: Run) -> None:
    counts = _simulate(run, run.source, run.size)
    failing = Counts() if run.short else _simulate(run, run.source, run.size // 5, FAILING)
    for loss in failing.lost:
        run.violate(f"after a failed sync: {loss}")
    for loss in counts.lost:
        run.violate(loss)
    normal = plant(run.source, run.folder / "normal", NORMAL)
    shown = _simulate(run, normal, max(60, run.size // 20))
    run.check(bool(shown.lost), "with synchronous=NORMAL nothing was lost: this proof has no teeth")
    run.figure(
        states=counts.states,
        answers=counts.answers,
        syncs=counts.syncs,
        checkpoints=counts.checkpoints,
        states_with_a_loss=counts.bad,
        states_served_again=counts.served,
        syncs_that_failed=failing.failures,
        states_after_failed_syncs=f"{failing.states}, {failing.bad} with a loss",
        with_synchronous_normal=f"{shown.bad} of {shown.states} states lose answers",
    )


@dataclass
class Counts:
    states: int = 0
    bad: int = 0
    answers: int = 0
    syncs: int = 0
    checkpoints: int = 0
    served: int = 0
    failures: int = 0
    lost: list[str] = field(default_factory=list)
    last: tuple[Disk, Answered] | None = None


def _simulate(run: Run, source: Path, size: int, faults: tuple[str, ...] = ()) -> Counts:
    folder = run.folder / f"of-{source.name}{'-failing' if faults else ''}"
    with zygote(source) as made:
        log, prompts, server = _trace(run, source, folder, made, faults)
        counts = _replay(run, log, prompts, server.data_dir, size)
        log.unlink()
        if source == run.source and not faults:
            _serve_states(run, counts, folder, made)
    return counts


def _trace(
    run: Run, source: Path, folder: Path, made: Zygote, faults: tuple[str, ...]
) -> tuple[Path, dict[tuple[str, int], str], Server]:
    log = folder / "calls.log"
    turns = 12 if run.short else 60
    with Server(folder, made, source=source) as server:
        server.start(trace=[*STRACE, *faults, "-o", str(log)])
        prompts = asyncio.run(_load(run, server, turns))
    return log, prompts, server


async def _load(run: Run, server: Server, turns: int) -> dict[tuple[str, int], str]:
    client = Client(server.port, server.token())
    sessions = [await client.session() for _ in range(3)]
    # Read as they are stored, so that the bytes on the socket can be looked for on the disk.
    readers = [Reader(client, session, form="compact") for session in sessions]
    tasks = [asyncio.create_task(reader.follow()) for reader in readers]

    async def work(number: int, session: str) -> None:
        for count in range(turns // 3):
            size = run.random.choice((10, 300, 3000, 20_000))
            await client.submit(session, f"chunks 4 {size} 2\necho {number}.{count}", f"k{count}")
            if run.random.random() < 0.6:
                await client.wait_ended(session)
        await client.wait_ended(session)

    await asyncio.gather(*(work(number, session) for number, session in enumerate(sessions)))
    for task in tasks:
        task.cancel()
    return {(ack.session, ack.turn): ack.prompt for ack in client.acks}


def _replay(run: Run, log: Path, prompts: dict[tuple[str, int], str], data_dir: Path, size: int) -> Counts:
    """Twice through the log: once to count the answers, once to spread the states over them."""
    counts = Counts()
    answered = Answered()
    steps = list(read_log(log))
    answers = [
        at
        for at, step in enumerate(steps)
        if step.begin and step.call.data and not step.call.target.startswith("/")
        if answered.hear(step.call.data, prompts)
    ]
    counts.answers = len(answers)
    share = {at: len(range(n, size, len(answers))) for n, at in enumerate(answers)}
    disk, answered = Disk(data_dir, FILES), Answered()
    for at, step in enumerate(steps):
        disk.step(step)
        if step.call.name == "pwrite64" and step.begin and step.call.target.endswith("forge.db"):
            counts.checkpoints += step.call.number == 0
        if at not in share:
            continue
        answered.hear(step.call.data, prompts)
        for _ in range(share[at]):
            kind = KINDS[counts.states % len(KINDS)]
            counts.states += 1
            losses = judge(disk.state(run.random, kind), answered)
            counts.bad += bool(losses)
            counts.lost += [f"{kind} state at answer {answers.index(at) + 1}: {loss}" for loss in losses[:2]]
            run.progress(f"{counts.states} of {size} states, {counts.bad} with a loss")
    counts.syncs = disk.syncs
    counts.failures = disk.failures
    counts.last = (disk, answered)
    return counts


def judge(files: dict[str, bytes], answered: Answered) -> list[str]:
    """What is wrong with this disk, given what had been answered."""
    base = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=base, prefix="clawdforge-power-") as name:
        folder = Path(name)
        for file, content in files.items():
            (folder / file).write_bytes(content)
        try:
            return _check_disk(folder / "forge.db", answered)
        except apsw.Error as error:
            return [f"cannot be opened: {error}"]


def _check_disk(path: Path, answered: Answered) -> list[str]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        verdict = connection.execute("PRAGMA integrity_check").fetchall()
        if verdict != [("ok",)]:
            return [f"corrupt: {verdict[0][0]}"]
        turns = {
            (session, turn): prompt
            for session, turn, prompt in connection.execute(
                "SELECT session_id, turn_index, prompt FROM turns"
            )
        }
        events = {bytes(data) for (data,) in connection.execute("SELECT data FROM events")}
        packs = connection.execute("SELECT codec, first_seq, last_seq, data FROM packs")
        events |= {row.data for pack in packs for row in unpack(*pack)}
    finally:
        connection.close()
    lost = [key for key, prompt in answered.turns.items() if turns.get(key) != prompt]
    gone = answered.events - events
    return [f"{len(lost)} acknowledged turns are lost"] * bool(lost) + [
        f"{len(gone)} events that were shown are lost"
    ] * bool(gone)


def _serve_states(run: Run, counts: Counts, folder: Path, made: Zygote) -> None:
    """On some of these disks a server must start, end what was cut off, and take a prompt."""
    assert counts.last is not None
    disk, answered = counts.last
    for number in range(1 if run.short else SERVED_STATES):
        shutil.rmtree(folder / "data")
        (folder / "data").mkdir(0o700)
        for name, content in disk.state(run.random, ("torn", "durable", "subset")[number % 3]).items():
            (folder / "data" / name).write_bytes(content)
        with Server(folder, made, source=run.source) as server:
            server.start()
            asyncio.run(_usable(run, server, answered))
        counts.served += 1


async def _usable(run: Run, server: Server, answered: Answered) -> None:
    client = Client(server.port, server.token("another"))
    session = await client.session()
    await client.submit(session, "echo after", "k")
    turns = await client.wait_ended(session)
    run.check(turns[0]["outcome"] == "completed", "a server on a recovered disk cannot run a turn")
    status, audit = server.get("/admin/audit/verify")
    run.check(status == 200 and bool(audit.get("ok")), f"the audit ledger does not verify: {audit}")
    run.check(bool(answered.turns), "nothing was answered")
