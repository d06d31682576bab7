"""A full disk and one that fails: no answer without a durable row, no crash, and work goes on by itself."""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from proofs.kit.client import Ack, Client, Reader
from proofs.kit.history import check, fetch, heard
from proofs.kit.http import Cut
from proofs.kit.report import Run
from proofs.kit.server import Server, Stuck, Zygote, zygote
from proofs.kit.source import Change, plant
from proofs.kit.tracer import count_strikes, every_spelling

SHORT, FULL = 4, 200


@dataclass(frozen=True, slots=True)
class Fault:
    """A call that fails from one of its first `reach` on, for some `files` of the data folder or for all."""

    call: str
    error: str
    reach: int
    files: tuple[str, ...] = ()
    before: str = ""
    """A call whose failure leads to this one."""
    is_optional: bool = False
    """Whether there are machines on which the server does not make this call."""


STORE = ("forge.db", "forge.db-wal")
EMPTY = ("shadows/{}/empty", "shadows/{}/.new-empty")  # the agent of these sessions writes no files
TURNS = (*EMPTY, *(f"copies/{{}}/{number}.json" for number in range(1, 9)))
FAULTS = (
    Fault("fdatasync", "EIO", 6, STORE),
    Fault("pwrite64", "ENOSPC", 60, STORE),
    Fault("pwrite64", "EIO", 60, STORE),
    Fault("fdatasync", "ENOSPC", 6, STORE),
    Fault("ftruncate", "EIO", 1, STORE, before="fdatasync"),
    Fault("fsync", "EIO", 3),
    Fault("rename", "ENOSPC", 2),
    Fault("mkdir", "ENOSPC", 10),
    Fault("write", "ENOSPC", 4, TURNS),  # never the sockets: that is a broken network, not a disk
    Fault("copy_file_range", "ENOSPC", 3, is_optional=True),  # not where files can be cloned
    Fault("openat", "EMFILE", 30),
    Fault("unlink", "EIO", 2),
)
STICKY = 40
HEALS_WITHIN = 15.0
TURN_SECS = 10  # an agent whose own files cannot be written may hang; that is not the server's fault
PLANTED = "planted: it was written all the same"
LANDED = Change(
    "src/clawdforge/stores/sqlite/writer.py",
    '            db.connection.execute("COMMIT")\n            self.commits += 1\n',
    '            db.connection.execute("COMMIT")\n            self.commits += 1\n'
    "            told = [event.type for events in batch.appended.values() for event in events]\n"
    '            if self.commits % (3 if "turn.queued" in told else 9) == 0:\n'
    f'                raise apsw.FullError("{PLANTED}")\n',
)


class Case:
    """Sends prompts before, during and after a fault, and compares the replies with what was stored."""

    def __init__(self, run: Run, server: Server, client: Client, name: str) -> None:
        self.name = name
        self.refused = 0
        self.unsure = 0
        self.run = run
        self.server = server
        self.client = client
        self._asked: list[tuple[str, str, str]] = []
        self._files: dict[str, bytes] = {}

    async def ask(self, session: str, text: str) -> bool:
        """Send a prompt once. 2xx is a promise and 503 an honest refusal; any other reply is a violation."""
        key = f"k{len(self._asked)}"
        prompt = f"chunks 2 200\necho {session} {text}"
        self._asked.append((session, key, prompt))
        try:
            body = {"prompt": prompt, "timeout_secs": TURN_SECS}
            reply = await self.client.call("POST", f"/sessions/{session}/turns", body, key)
        except Cut as cut:
            self.unsure += 1
            self.run.check(self.server.alive, f"{self.name}: the server died: {cut}")
            return False
        if reply.ok:
            self.client.acks.append(Ack(session, key, prompt, int(reply.json()["turn_index"])))
            return True
        self.refused += 1
        self.run.check(reply.status == 503, f"{self.name}: answered {reply.status} {reply.body[:200]!r}")
        return False

    async def upload(self) -> None:
        """The same for a file: what was answered is there, and nothing else than 503 or 507 refuses it."""
        content = f"{self.name} {len(self._files)}\n".encode() * 100
        try:
            reply = await self.client.upload("fault.txt", content)
        except Cut as cut:
            self.run.check(self.server.alive, f"{self.name}: the server died: {cut}")
            return
        if reply.ok:
            self._files[str(reply.json()["file_token"])] = content
            await self._remove_one_of(2)
            return
        self.refused += 1
        self.run.check(
            reply.status in (503, 507),
            f"{self.name}: a file was answered {reply.status} {reply.body[:200]!r}",
        )

    async def _remove_one_of(self, many: int) -> None:
        """Of so many files the first; it may then be there or not, since a removal may also have failed."""
        if len(self._files) < many:
            return
        token = next(iter(self._files))
        del self._files[token]
        with suppress(Cut):
            reply = await self.client.call("DELETE", f"/files/{token}")
            self.run.check(reply.ok or reply.status == 503, f"{self.name}: a removal got {reply.status}")

    async def check_healed(self, session: str) -> float:
        """Check that after the fault everything succeeds again without a restart.

        Returns how long it took.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        while not await self.ask(session, f"{self.name} healed {loop.time()}"):
            if loop.time() - began > HEALS_WITHIN:
                raise Stuck(f"{self.name}: does not heal within {HEALS_WITHIN:g} s")
            await asyncio.sleep(0.05)
        spent = loop.time() - began
        for where, key, prompt in list(self._asked):
            await self.client.submit(where, prompt, key, timeout_secs=TURN_SECS)
        return spent

    async def check_end(self, sessions: list[str], *, restart: bool = True) -> None:
        """Check that every turn has ended; then kill the server and check that all of it is on the disk."""
        for session in sessions:
            await self.client.wait_ended(session, 60)
        if restart:
            await asyncio.to_thread(self.server.kill)
            await asyncio.to_thread(self.server.start)
        for token, content in self._files.items():
            reply = await self.client.call("GET", f"/files/{token}")
            self.run.check(
                reply.body == content, f"{self.name}: a file that was taken is {reply.body[:100]!r}"
            )
        for session in sessions:
            history = await fetch(self.client, session)
            history.heard = heard(self.server.witness)
            for fault in check(history):
                self.run.violate(f"{self.name}: {fault}")
            last = history.turns[-1]
            self.run.check(
                last["outcome"] in ("completed", "failed"),
                f"{self.name}: the last turn ended {last['outcome']}",
            )


def prove(run: Run) -> None:
    heals: list[float] = []
    with zygote(run.source) as made:
        full = _full_disk(run, made, heals)
        reported = _report_false_failures(run)
        with Server(run.folder / "faults", made, source=run.source) as server:
            server.start()
            cases = asyncio.run(_inject_all(run, server, heals))
    run.figure(
        full_disk=full,
        commits_that_landed_and_were_called_failed=reported,
        faults_injected=run.size,
        faults_that_came_too_late=len(cases) - run.size,
        answers_503=sum(case.refused for case in cases),
        healed_secs_max=round(max(heals, default=0.0), 2),
        crashes=sum("the server died" in text for text in run.violations),
    )


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[bool]:
    """Mount a small file system; False where that is not allowed."""
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", str(folder)]
    done = subprocess.run(mount, check=False, capture_output=True)
    try:
        yield done.returncode == 0
    finally:
        if done.returncode == 0:
            subprocess.run(["umount", "-l", str(folder)], check=True)


def _full_disk(run: Run, made: Zygote, heals: list[float]) -> str:
    with small_disk(run.folder / "disk", "24m") as mounted:
        if not mounted:
            return "left out: no right to mount"
        data = run.folder / "disk" / "data"
        with Server(run.folder / "full", made, source=run.source, data_dir=data) as server:
            server.start()
            return asyncio.run(_fill(run, server, run.folder / "disk" / "ballast", heals))


async def _fill(run: Run, server: Server, ballast: Path, heals: list[float]) -> str:
    client = Client(server.port, server.token())
    case = Case(run, server, client, "full disk")
    sessions = [await client.session(retention="keep") for _ in range(3)]
    rounds = 2 if run.short else 10
    for number in range(rounds):
        for session in sessions:
            await case.ask(session, f"before {number}")
        with ballast.open("wb") as file:
            _fill_up(file.fileno(), leave=run.random.randrange(0, 60_000))
        for count in range(8 if run.short else 25):
            await case.ask(sessions[count % 3], f"full {number}.{count}")
        run.check(server.alive, "full disk: the server died")
        ballast.unlink()
        heals.append(await case.check_healed(sessions[0]))
        run.progress(f"{number + 1} of {rounds} times full, {case.refused} refused")
    await case.check_end(sessions)
    run.check(case.refused > 0, "full disk: it was never full")
    return f"{rounds} times, {case.refused} answers 503"


def _fill_up(fd: int, leave: int) -> None:
    total = 0
    try:
        while True:
            total += os.write(fd, bytes(1 << 16))
    except OSError:
        os.ftruncate(fd, max(0, total - leave))


def _report_false_failures(run: Run) -> int:
    """Plant a bug that reports some commits as failed although they are on the disk, mostly of prompts."""
    source = plant(run.source, run.folder / "told", LANDED)
    with zygote(source) as made, Server(run.folder / "landed", made, source=source) as server:
        server.start()
        asyncio.run(_ask_through_false_failures(run, server))
        return server.log.read_text().count(PLANTED)


async def _ask_through_false_failures(run: Run, server: Server) -> None:
    client = Client(server.port, server.token())
    case = Case(run, server, client, "commits that landed")
    sessions = [await client.session(retention="keep") for _ in range(4)]
    readers = [Reader(client, session) for session in sessions]
    tasks = [asyncio.create_task(reader.follow()) for reader in readers]

    async def work(session: str) -> None:
        for count in range(12 if run.short else 60):
            prompt = f"chunks 3 40 5\necho {session} {count}"
            await client.submit(session, prompt, f"k{count}", timeout_secs=TURN_SECS)
            if run.random.random() < 0.7:
                await client.wait_ended(session, 30)
                await asyncio.sleep(run.random.uniform(0, 0.5))  # a session at rest takes another path

    await asyncio.gather(*(work(session) for session in sessions))
    for reader in readers:
        await client.wait_ended(reader.session, 60)
        history = await fetch(client, reader.session)
        await reader.until(len(history.events), 5)
        history.copy, history.heard = reader.copy, heard(server.witness)
        for fault in (*check(history), *reader.faults):
            run.violate(f"{case.name}: {fault}")
        cut = [turn for turn in history.turns if turn["outcome"] not in ("completed", "failed")]
        run.check(not cut, f"{case.name}: {len(cut)} turns ended {[turn['outcome'] for turn in cut][:3]}")
    for task in tasks:
        task.cancel()


async def _inject_all(run: Run, server: Server, heals: list[float]) -> list[Case]:
    """Inject every fault. One that came too late to make a call fail is tried again, earlier."""
    client = Client(server.port, server.token())
    cases: list[Case] = []
    struck = idle = 0
    faults, left_out = list(FAULTS), []
    while struck < run.size:
        fault = faults[struck % len(faults)]
        first = run.random.randint(1, fault.reach) if struck and not idle else 1
        sticky = bool(struck // len(FAULTS) % 2) if not run.short else run.random.random() < 0.5
        when = f"{first}..{first + STICKY}" if sticky else str(first)
        case = Case(run, server, client, f"{fault.call} {fault.error} when={when}")
        cases.append(case)
        hit = await _inject(case, fault, when, heals, restart=struck % 5 == 4 or struck == run.size - 1)
        struck, idle = (struck + 1, 0) if hit else (struck, idle + 1)
        if idle > 3 and not fault.is_optional:
            raise Stuck(f"{case.name}: the server makes no such call, so nothing is proven")
        if idle > 3:
            idle = 0
            faults.remove(fault)
            left_out.append(fault.call)
        run.progress(f"{struck} of {run.size} faults, {sum(one.refused for one in cases)} answers 503")
    run.figure(calls_that_are_not_made_here=", ".join(left_out) or "none")
    return cases


async def _inject(case: Case, fault: Fault, when: str, heals: list[float], *, restart: bool) -> bool:
    server, log = case.server, case.server.folder / "strikes.log"
    log.unlink(missing_ok=True)
    sessions = [await case.client.session(retention="keep") for _ in range(2)]
    names = sorted({name.format(session) for name in fault.files for session in sessions})
    arguments = ["-o", str(log), *(f"-P{server.data_dir / name}" for name in names)]
    arguments += ["-e", f"trace={every_spelling(fault.call)}" + (f",{fault.before}" if fault.before else "")]
    if fault.before:
        arguments += ["-e", f"inject={fault.before}:error={fault.error}:when=1"]
    arguments += ["-e", f"inject={every_spelling(fault.call)}:error={fault.error}:when={when}"]
    await asyncio.to_thread(server.trace, arguments)
    for count in range(6):
        await case.ask(sessions[count % 2], f"{case.name} {count}")
        await case.upload()  # an ordinary turn makes no fsync of its own
    await asyncio.sleep(0.3)
    await asyncio.to_thread(server.untrace)
    if not case.run.check(server.alive, f"{case.name}: the server died"):
        server.start()
    heals.append(await case.check_healed(sessions[0]))
    await case.check_end(sessions, restart=restart)
    return count_strikes(log, fault.call) > 0
