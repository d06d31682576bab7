"""Changes to a session besides turns: each is done completely or not at all, wherever a kill falls."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from proofs.kit.client import Client
from proofs.kit.http import Cut, Reply
from proofs.kit.server import Server, Stuck, until

FIRST, SECOND, LATER = "w-one", "w-two", "w-three"
NOTE = "note.txt"
PROMPTS = {word: f"write {NOTE} {word}\necho {word}" for word in (FIRST, SECOND)}
CONTENT = bytes(range(256)) * 40
CLEARED_WITHIN = 10.0
FOLDERS = ("homes", "copies", "shadows", "workspaces")


@dataclass(frozen=True, slots=True)
class Deed:
    """`method` and `path` after some `first` ones; it leaves the words `after` where `before` were."""

    name: str
    method: str = "POST"
    path: str = ""
    body: Any = None
    first: tuple[tuple[str, str, Any], ...] = ()
    before: tuple[str, ...] = (FIRST, SECOND)
    after: tuple[str, ...] = (FIRST, SECOND)
    files: bool = False
    """Whether the workspace goes along."""


UNDO = ("POST", "/sessions/{}/undo", {"turns": 1, "files": True})
DEEDS = (
    Deed("undo", "POST", "/sessions/{}/undo", {"turns": 1}, after=(FIRST,)),
    Deed("undo with files", *UNDO, after=(FIRST,), files=True),
    Deed("redo with files", "POST", "/sessions/{}/redo", {"files": True}, (UNDO,), (FIRST,), files=True),
    Deed("clear", "POST", "/sessions/{}/clear", {}, after=()),
    Deed("fork", "POST", "/sessions/{}/fork", {}),
    Deed("close", "DELETE", "/sessions/{}"),
    Deed("purge", "POST", "/sessions/{}/purge"),
    Deed("upload"),
    Deed("remove", "DELETE", "/files/{file}"),
)


@dataclass
class Scene:
    """One deed on one session of its own: what was asked, answered, and what must be found afterwards."""

    deed: Deed
    client: Client
    server: Server
    session: str = ""
    file: str = ""
    reply: Reply | None = None

    async def prepare(self) -> None:
        client = self.client
        self.session = await client.session(retention="keep")
        for word in (FIRST, SECOND):
            await client.submit(self.session, PROMPTS[word], word)
            await client.wait_ended(self.session)
        if self.deed.name == "remove":
            self.file = str((await self._upload()).json()["file_token"])
        for method, path, body in self.deed.first:
            await client.repeat(method, path.format(self.session), body)

    async def act(self) -> None:
        """Once. What is cut off is not known to have happened; then somebody says something."""
        try:
            reply = await self._ask()
        except Cut:
            return
        if reply.ok:
            self.reply = reply
        elif reply.status != 503:
            raise AssertionError(f"{self.deed.name}: {reply.status} {reply.body[:300]!r}")
        if self.deed.name not in ("close", "purge"):
            await self.client.submit(self.session, f"echo {LATER}", LATER)
            await self.client.wait_ended(self.session)

    async def faults(self) -> list[str]:
        """After a restart: what is not as it was before, nor as it should be now."""
        found = [*await self._story(self.session), *await self._files()]
        if self.deed.name == "fork":
            made = _ids(
                self.server.data_dir, "SELECT session_id FROM sessions WHERE forked_from = ?", self.session
            )
            expected = {self.reply.json()["session_id"]} if self.reply else made
            if made != expected or len(made) > 1:
                found.append(f"the fork is {expected}, and there are {made}")
            for session in made:
                found += await self._story(session)
        try:
            await asyncio.to_thread(
                until, lambda: not strays(self.server.data_dir), "an end of strays", CLEARED_WITHIN
            )
        except Stuck:
            found += strays(self.server.data_dir)
        return [f"{self.deed.name}, {'answered' if self.reply else 'not answered'}: {text}" for text in found]

    async def _ask(self) -> Reply:
        if self.deed.name == "upload":
            return await self._upload()
        path = self.deed.path.format(self.session, file=self.file)
        return await self.client.call(self.deed.method, path, self.deed.body)

    async def _upload(self) -> Reply:
        return await self.client.upload("a.bin", CONTENT)

    async def _story(self, session: str) -> Iterable[str]:
        """The transcript is one of two, the agent remembers that one, and the workspace is of that one."""
        client, deed, found = self.client, self.deed, []
        state = await client.call("GET", f"/sessions/{session}")
        if state.status == 404:
            return [] if deed.name == "purge" else ["the session is gone"]
        if deed.name == "purge" and self.reply:
            return ["the session is still there"]
        closed = state.json()["closed_at"] is not None
        if deed.name in ("close", "purge"):
            if self.reply and not closed:
                found.append("it is open")
            if closed:
                await client.repeat("POST", f"/sessions/{session}/reopen", {})
        await client.wait_ended(session)
        shown = await self._words(session)
        wanted = (deed.after,) if self.reply else (deed.before, deed.after)
        if shown not in wanted:
            found.append(f"the transcript has {shown}, not {' or '.join(map(str, wanted))}")
        note = Path(state.json()["cwd"]) / NOTE
        notes = [note.read_text().strip()] if self.reply else []
        answer = await self._recall(session, 1)
        notes.append(note.read_text().strip())  # what was answered is done; else the next turn finishes it
        if deed.files and any((text,) != shown[-1:] for text in notes):
            found.append(f"the workspace is of {notes}, the transcript of {shown}")
        if any(word not in answer for word in shown):  # a transcript came along with the question: ask again
            answer += await self._recall(session, 2)
        if any((word in answer) != (word in shown) for word in (FIRST, SECOND)):
            found.append(f"the transcript has {shown}, the agent remembers {answer[:300]!r}")
        return found

    async def _words(self, session: str) -> tuple[str, ...]:
        rows = await self.client.pages(f"/sessions/{session}/messages", "messages")
        asked = [row["content"] for row in rows if row["role"] == "user"]
        return tuple(word for text in asked for word, prompt in PROMPTS.items() if text == prompt)

    async def _recall(self, session: str, number: int) -> str:
        """What the agent knew before it was asked."""
        await self.client.submit(session, "recall all", f"recall-{self.server.pid}-{number}")
        await self.client.wait_ended(session)
        rows = await self.client.pages(f"/sessions/{session}/messages", "messages")
        return str(rows[-1]["content"]) if rows[-1]["role"] == "assistant" else ""

    async def _files(self) -> Iterable[str]:
        token = self.file or (
            self.reply.json()["file_token"] if self.deed.name == "upload" and self.reply else ""
        )
        if not token:
            return []
        reply = await self.client.call("GET", f"/files/{token}")
        there = reply.status == 200 and reply.body == CONTENT
        if self.deed.name == "upload" and not there:
            return [f"the file is gone: {reply.status}"]
        if self.deed.name == "remove" and (self.reply or not there) and reply.status != 404:
            return [f"the file is {reply.status} with {len(reply.body)} bytes"]
        return []


def _ids(data_dir: Path, query: str, *values: str) -> set[str]:
    connection = apsw.Connection(str(data_dir / "forge.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return {str(value) for (value,) in connection.execute(query, values)}
    finally:
        connection.close()


def strays(data_dir: Path) -> list[str]:
    """Files without a row, rows without a file, folders without a session."""
    rows = _ids(data_dir, "SELECT path FROM files")
    lying = {str(path) for path in (data_dir / "files").rglob("*") if path.is_file()}
    found = [f"only a file or only its row: {sorted(rows ^ lying)[:3]}"] if rows ^ lying else []
    sessions = _ids(data_dir, "SELECT session_id FROM sessions")
    for folder in FOLDERS:
        names = {path.name for path in (data_dir / folder).glob("*-*-*")} - sessions
        found += [f"{folder} of no session: {sorted(names)[:3]}"] if names else []
    return found
