"""Webhooks: sessions are prompted and closed while the server is killed; each event arrives, under one id."""

import asyncio
import json
import time
from collections import defaultdict
from contextlib import suppress
from datetime import datetime
from typing import Any

from proofs.kit.client import PAUSE, Client
from proofs.kit.report import Run
from proofs.kit.server import Server, Stuck, free_port, zygote

SHORT, FULL = 60, 10_000
EACH_KILL = 40
"""A kill after so many events, on the average."""
CLIENTS = 8
PROMPTED = 5
"""One session in so many is prompted before it is closed."""
REFUSED = 100
"""One delivery in so many is answered with a failure, in the full form."""
ARRIVAL_SECS = 180.0
Key = tuple[str, str, int]


def prove(run: Run) -> None:
    port = free_port()
    env = {"CLAWDFORGE_WEBHOOKS": "true", "CLAWDFORGE_WEBHOOK_HOSTS": f"127.0.0.1:{port}"}
    with zygote(run.source) as made, Server(run.folder, made, source=run.source, env=env) as server:
        server.start()
        asyncio.run(_Play(run, server, port).play())


class _Receiver:
    """Keeps each message by what it is about, and answers some with a failure."""

    def __init__(self, run: Run) -> None:
        self.ids: dict[Key, set[str]] = defaultdict(set)
        self.bodies: dict[str, set[bytes]] = defaultdict(set)
        self.arrived: dict[Key, tuple[float, float]] = {}  # when it happened, and when it was first told
        self.messages = 0
        self.refused = 0
        self._run = run

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            fields = dict(line.split(": ", 1) for line in head.splitlines()[1:] if line)
            body = await reader.readexactly(int(fields["content-length"]))
            good = self._run.short or self._run.random.randrange(REFUSED) > 0
            self._note(fields["webhook-id"], body)
            self.refused += not good
            writer.write(f"HTTP/1.1 {204 if good else 500} x\r\n\r\n".encode())
            await writer.drain()
        writer.close()

    def _note(self, name: str, body: bytes) -> None:
        told = json.loads(body)
        key = (told["type"], told["data"]["session_id"], told["data"].get("turn") or 0)
        self.messages += 1
        self.ids[key].add(name)
        self.bodies[name].add(body)
        happened = datetime.fromisoformat(told["timestamp"]).timestamp()
        self.arrived.setdefault(key, (happened, time.time()))


class _Play:
    def __init__(self, run: Run, server: Server, port: int) -> None:
        self._run = run
        self._server = server
        self._port = port
        self._client = Client(server.port, server.token())
        self._receiver = _Receiver(run)
        self._expected: set[Key] = set()
        self._sessions: list[str] = []
        self._kills: list[float] = []

    async def play(self) -> None:
        listener = await asyncio.start_server(self._receiver.serve, "127.0.0.1", self._port)
        async with listener:
            hook = {"url": f"http://127.0.0.1:{self._port}/", "events": ["turn.ended", "session.closed"]}
            await self._client.repeat("POST", "/webhooks", hook)
            working = asyncio.gather(*(self._work(number) for number in range(CLIENTS)))
            await asyncio.gather(working, self._kill_sometimes(working))
            await self._wait()
        self._check()

    async def _work(self, number: int) -> None:
        while len(self._expected) < self._run.size:
            session = await self._client.session()
            if self._run.random.randrange(PROMPTED) == 0:
                await self._client.submit(session, f"echo {number}", f"key-{session}")
                for turn in await self._client.wait_ended(session):
                    self._expected.add(("turn.ended", session, int(turn["turn_index"])))
            await self._client.repeat("DELETE", f"/sessions/{session}")
            self._expected.add(("session.closed", session, 0))
            self._run.progress(f"{len(self._expected)} of {self._run.size} events, {len(self._kills)} kills")

    async def _kill_sometimes(self, working: "asyncio.Future[Any]") -> None:
        after = 0
        while True:
            after += self._run.random.randrange(1, 2 * EACH_KILL)
            while len(self._expected) < after and not working.done():
                await asyncio.sleep(PAUSE)
            if working.done():
                return
            await asyncio.to_thread(self._server.kill)
            self._kills.append(time.time())
            await asyncio.to_thread(self._server.start)

    async def _wait(self) -> None:
        """What failed is tried again after some seconds."""
        end = asyncio.get_running_loop().time() + ARRIVAL_SECS
        while not self._expected <= self._receiver.ids.keys():
            if asyncio.get_running_loop().time() > end:
                lost = len(self._expected - self._receiver.ids.keys())
                raise Stuck(f"{lost} events were not told within {ARRIVAL_SECS:g} s")
            await asyncio.sleep(PAUSE)

    def _check(self) -> None:
        check, receiver = self._run.check, self._receiver
        unasked = receiver.ids.keys() - self._expected
        check(not unasked, f"told of what did not happen: {sorted(unasked)[:3]}")
        several = [key for key, ids in receiver.ids.items() if len(ids) > 1]
        check(not several, f"told under several ids: {several[:3]}")
        differing = [name for name, bodies in receiver.bodies.items() if len(bodies) > 1]
        check(not differing, f"one id with several bodies: {differing[:3]}")
        calm = sorted(
            told - happened
            for happened, told in receiver.arrived.values()
            if not any(happened <= at <= told for at in self._kills)
        )
        self._run.figure(
            events=len(self._expected),
            kills=len(self._kills),
            messages=receiver.messages,
            told_again=receiver.messages - len(receiver.ids),
            answered_with_a_failure=receiver.refused,
            told_after_secs_p50=round(calm[len(calm) // 2], 3) if calm else None,
            told_after_secs_p95=round(calm[len(calm) * 95 // 100], 3) if calm else None,
        )
