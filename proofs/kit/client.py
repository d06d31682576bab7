"""Clients of a server that may die at any moment: keyed retries, and a reader that resumes."""

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from proofs.kit.http import Cut, Reply, request, stream
from proofs.kit.server import Stuck

PAUSE, LONG_PAUSE = 0.03, 0.08  # before the next try; a server that is down is asked less often
PATIENCE = 240.0  # between kills that come every few seconds, on a machine that has other things to do


@dataclass(frozen=True, slots=True)
class Ack:
    """An acknowledgement: the server answered 2xx that this key is this turn of this session."""

    session: str
    key: str
    prompt: str
    turn: int


@dataclass
class Client:
    """One app's requests. Whatever is acknowledged is written down."""

    port: int
    token: str
    acks: list[Ack] = field(default_factory=list)
    cuts: int = 0
    refusals: dict[int, int] = field(default_factory=dict)

    async def call(self, method: str, path: str, body: Any = None, key: str | None = None) -> Reply:
        headers = {"Idempotency-Key": key} if key else {}
        return await request(self.port, method, path, self.token, body=body, headers=headers)

    async def upload(self, name: str, content: bytes) -> Reply:
        head = f'Content-Disposition: form-data; name="file"; filename="{name}"'
        body = b"--xx\r\n" + head.encode() + b"\r\n\r\n" + content + b"\r\n--xx--\r\n"
        kind = {"Content-Type": "multipart/form-data; boundary=xx"}
        return await request(self.port, "POST", "/files", self.token, data=body, headers=kind)

    async def repeat(
        self, method: str, path: str, body: Any = None, key: str | None = None, seconds: float = PATIENCE
    ) -> Any:
        """Repeat a request until it is answered 2xx. Only for requests that may be repeated."""
        end = asyncio.get_running_loop().time() + seconds
        last, pause = "", PAUSE
        while asyncio.get_running_loop().time() < end:
            try:
                reply = await self.call(method, path, body, key)
            except Cut as cut:
                self.cuts += 1
                last = str(cut)
            else:
                if reply.ok:
                    return reply.json()
                self.refusals[reply.status] = self.refusals.get(reply.status, 0) + 1
                last = f"{reply.status} {reply.body[:300]!r}"
                if reply.status not in (502, 503, 504):
                    break
            await asyncio.sleep(pause)
            pause = min(LONG_PAUSE, pause * 1.3)
        raise Stuck(f"{method} {path} was never answered 2xx; at last {last}")

    async def session(self, **body: Any) -> str:
        reply = await self.repeat("POST", "/sessions", {"agent": "scripted", **body})
        return str(reply["session_id"])

    async def submit(self, session: str, prompt: str, key: str, *, wait: bool = False, **body: Any) -> int:
        """Submit one prompt, however often it has to be sent."""
        where = "turns"
        if wait:  # a turn that ends badly is an answer too: it is recorded, so ask which one it is
            try:
                reply = await self.call("POST", f"/sessions/{session}/turn", {"prompt": prompt, **body}, key)
                if reply.ok:
                    return self._record_ack(session, key, prompt, reply.json())
            except Cut:
                self.cuts += 1
        reply = await self.repeat("POST", f"/sessions/{session}/{where}", {"prompt": prompt, **body}, key)
        return self._record_ack(session, key, prompt, reply)

    def _record_ack(self, session: str, key: str, prompt: str, reply: Any) -> int:
        turn = int(reply["turn_index"])
        self.acks.append(Ack(session, key, prompt, turn))
        return turn

    async def pages(self, path: str, name: str) -> list[Any]:
        """All of a paged list."""
        found: list[Any] = []
        after = 0
        mark = "&" if "?" in path else "?"
        while True:
            page = await self.repeat("GET", f"{path}{mark}after={after}&limit=1000")
            found += page[name]
            following = page.get("next")
            if not page[name] or following is None:
                return found
            after = following

    async def wait_ended(self, session: str, seconds: float = 120) -> list[Any]:
        """Wait until all turns of the session have ended, and return them."""
        end = asyncio.get_running_loop().time() + seconds
        while True:
            turns = await self.pages(f"/sessions/{session}/turns", "turns")
            open_ = [(turn["turn_index"], turn["state"]) for turn in turns if turn["state"] != "ended"]
            if not open_:
                return turns
            if asyncio.get_running_loop().time() > end:
                raise Stuck(f"session {session}: turns {open_[:5]} did not end within {seconds:g} s")
            await asyncio.sleep(0.05)


def digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=12).digest()


class Reader:
    """Follows one session's log and resumes by its own last id, whatever happens to the connection."""

    def __init__(self, client: Client, session: str, *, keep: bool = True, form: str = "nested") -> None:
        self.session = session
        self.keep = keep  # the bytes themselves, or only a digest of them
        self.copy: list[bytes] = []
        self.faults: list[str] = []
        self.drops = 0
        self._client = client
        self._path = f"/sessions/{session}/events?form={form}"

    @property
    def last(self) -> int:
        return len(self.copy)

    async def follow(self, leave: Callable[[int], bool] = lambda _seen: False) -> None:
        """Read for ever; `leave` says after how many frames of a connection to drop it."""
        pause = PAUSE
        while True:
            before = self.last
            try:
                await self._once(leave)
            except Cut:
                await asyncio.sleep(pause)
            pause = PAUSE if self.last > before else min(LONG_PAUSE, pause * 1.3)

    async def until(self, seq: int, seconds: float = 30) -> None:
        """Wait until this event was read; a reader that never gets there is for the checker to find."""
        end = asyncio.get_running_loop().time() + seconds
        while self.last < seq and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(0.02)

    async def _once(self, leave: Callable[[int], bool]) -> None:
        seen = 0
        frames = stream(self._client.port, self._path, self._client.token, self.last)
        try:
            async for frame in frames:
                if frame is not None:
                    seen += 1
                    if frame.seq != self.last + 1:
                        self.faults.append(f"reader of {self.session}: {frame.seq} after {self.last}")
                        return
                    self.copy.append(frame.data if self.keep else digest(frame.data))
                if leave(seen):
                    self.drops += 1
                    return
        finally:
            await frames.aclose()  # type: ignore[attr-defined]
