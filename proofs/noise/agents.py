"""Ways of an agent: it talks, lies, asks and reads without an end, and what lies in its folder is a trap."""

import asyncio
import itertools
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from proofs.noise.way import Noisy, Way

MIB = 1 << 20
TURN_SECS = 30


async def turn(noisy: Noisy, session: str, prompt: str) -> None:
    """A whole turn; it may end in any way, but it must end."""
    body = {"prompt": prompt, "timeout_secs": TURN_SECS}
    reply = await noisy.call("POST", f"/sessions/{session}/turn", body)
    noisy.bite(reply is not None and reply.status in (200, 429, 502, 504))


def saying(prompt: Callable[[Noisy], str], **made: str) -> Callable[[Noisy], Awaitable[None]]:
    """Every hand has a session of its own and says the same in it."""

    async def act(noisy: Noisy) -> None:
        session = await noisy.session(**made)
        while True:
            await turn(noisy, session, prompt(noisy))

    return act


def _chunks(noisy: Noisy) -> str:
    return f"flood {noisy.size(50_000, 3_000)} 20"


def _objects(noisy: Noisy) -> str:
    return f"objects {noisy.size(10, 1) * MIB // 3}"


async def ask_much(noisy: Noisy) -> None:
    """Questions that nobody answers, of many agents, until the turn is cancelled."""
    session = await noisy.session(permission_mode="ask")
    path = f"/sessions/{session}"
    await noisy.expect(202, "POST", f"{path}/turns", {"prompt": "ask noise\n" * 100})
    while True:
        page = await noisy.call("GET", f"{path}/permissions")
        for asked in page.json()["permissions"] if page is not None and page.ok else ():
            decision = {"option_id": "reject_once"}
            await noisy.expect(200, "POST", f"{path}/permissions/{asked['permission_id']}", decision)
        await asyncio.sleep(0.02)


async def queue_much(noisy: Noisy) -> None:
    session = await noisy.once("session", noisy.session)
    await noisy.expect(202, "POST", f"/sessions/{session}/turns", {"prompt": "chunks 5 20 5"})


async def cancel_much(noisy: Noisy) -> None:
    session = await noisy.session()
    while True:
        await noisy.call("POST", f"/sessions/{session}/turns", {"prompt": "hang"})
        await noisy.expect(200, "POST", f"/sessions/{session}/cancel", {})


async def start_much(noisy: Noisy) -> None:
    """A new session, a new process, one turn, the end: over and over."""
    session = await noisy.session()
    await turn(noisy, session, "echo hi")
    await noisy.call("DELETE", f"/sessions/{session}")


async def make_files(noisy: Noisy) -> Path:
    """They are on the disk before anything is measured: the noise is that they are read.

    A gigabyte that the kernel still has to write makes every sync wait, the server's commits among them, and
    whatever had written it.
    """
    folder = await _folder(noisy)
    for number in range(noisy.size(64, 8)):
        await asyncio.to_thread(_write_to_disk, folder / f"{number}.txt", noisy.size(16, 2) * MIB)
    return folder


async def prepare_files(noisy: Noisy) -> None:
    await noisy.once("files", lambda: make_files(noisy))


async def read_files(noisy: Noisy) -> None:
    """An agent that has the server read 64 files of 16 MiB for it."""
    folder = await noisy.once("files", lambda: make_files(noisy))
    session = await noisy.session(cwd=str(folder))
    lines = [f"fs-read {number}.txt" for number in range(noisy.size(64, 8))]
    while True:
        await turn(noisy, session, "\n".join(lines))


async def pipe_as_exclude(noisy: Noisy) -> None:
    """A workspace whose list of ignored files is a pipe that nobody writes to."""
    folder = await _folder(noisy)
    info = folder / ".git" / "info"
    info.mkdir(parents=True)
    os.mkfifo(info / "exclude")
    session = await noisy.session(cwd=str(folder))
    while True:
        await turn(noisy, session, "write a.txt hello")


async def sparse_file(noisy: Noisy) -> None:
    """A file of 2.5 GiB that takes no space, in a workspace of which copies are made."""
    folder = await _folder(noisy)
    with (folder / "sparse").open("wb") as file:
        file.truncate(noisy.size(2560, 256) * MIB)
    session = await noisy.session(cwd=str(folder))
    while True:
        await turn(noisy, session, "write a.txt hello")


async def many_files(noisy: Noisy) -> None:
    """A workspace of thousands of files, some of them new after each turn."""
    folder = await _folder(noisy)
    for number in range(noisy.size(5_000, 300)):
        (folder / f"{number}.txt").write_text(str(number))
    session = await noisy.session(cwd=str(folder))
    while True:
        await turn(noisy, session, "write a.txt hello")


async def _folder(noisy: Noisy) -> Path:
    """A new one: a way that is measured again finds those of the time before."""
    for number in itertools.count(1):
        folder = noisy.folder / f"{noisy.seed}-{number}"
        if not folder.exists():
            break
    folder.mkdir(parents=True)
    return folder


def _write_to_disk(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.write(b"x" * size)
        file.flush()
        os.fsync(file.fileno())


AGENTS = (
    Way(
        "chatty agents",
        "2 agents that send 50,000 chunks a turn",
        saying(lambda noisy: f"flood {noisy.size(50_000, 3_000)} 20"),
        2,
    ),
    Way("long lines", "lines of 24 MiB", saying(lambda noisy: f"bytes {noisy.size(24, 4) * MIB}"), 2),
    Way("lines of `{}`", "a line of 3.5 million `{}`", saying(_objects), 2),
    Way("tool calls", "4 agents with 500 tool calls a turn", saying(lambda _: "tools 500 0"), 4),
    Way("garbage", "lines that are no JSON", saying(lambda noisy: f"garbage {noisy.size(50_000, 2_000)}"), 2),
    Way("error output", "8 MiB of stderr a turn", saying(lambda _: f"stderr {8 * MIB}"), 2),
    Way("permissions", "4 agents that ask a hundred times", ask_much),
    Way("queues", "prompts of 32 callers for one session", queue_much, 32),
    Way("cancels", "8 sessions whose turns are cancelled at once", cancel_much, 8),
    Way("starts", "4 agents that are started for one turn each", start_much),
    Way("file reads", "64 files of 16 MiB through the server", read_files, 1, prepare_files),
    Way("a pipe to ignore", "8 workspaces whose `.git/info/exclude` is a pipe", pipe_as_exclude, 8),
    Way("sparse files", "a file of 2.5 GiB without content in a workspace", sparse_file, 2),
    Way("many files", "workspaces of 5,000 files", many_files, 2),
)
