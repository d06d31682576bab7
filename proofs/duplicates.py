"""Duplicates: prompts go through a proxy that cuts anywhere, are retried with their key, and are one turn."""

import asyncio
import contextlib
import random
from collections import Counter

from proofs.kit.client import Client
from proofs.kit.history import heard
from proofs.kit.report import Run
from proofs.kit.server import Server, zygote

SHORT, FULL = 80, 10_000
SESSIONS = 16
CUT = 0.5
MOST_BYTES = 900


class Proxy:
    """Passes bytes on, and cuts half of the connections after a random byte of either direction."""

    def __init__(self, port: int, chance: random.Random) -> None:
        self.cuts = 0
        self.whole = 0
        self._port = port
        self._chance = chance
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> int:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def __aexit__(self, *_error: object) -> None:
        self._server.close()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        budget = self._chance.randrange(MOST_BYTES) if self._chance.random() < CUT else None
        side = self._chance.random() < 0.5
        back = None
        try:
            server, back = await asyncio.open_connection("127.0.0.1", self._port)
            ways = (
                asyncio.create_task(self._pass(reader, back, budget if side else None)),
                asyncio.create_task(self._pass(server, writer, None if side else budget)),
            )
            try:
                await asyncio.gather(*ways)
            finally:
                for way in ways:
                    way.cancel()
            self.whole += 1
        except (OSError, EOFError):
            self.cuts += 1
        finally:
            for stream in (writer, back):
                if stream is not None:
                    with contextlib.suppress(OSError, RuntimeError):
                        stream.transport.abort()

    async def _pass(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, budget: int | None
    ) -> None:
        while data := await source.read(1 << 16):
            if budget is not None and len(data) >= budget:
                target.write(data[:budget])
                with contextlib.suppress(OSError):
                    await target.drain()
                await asyncio.sleep(0)
                raise EOFError
            if budget is not None:
                budget -= len(data)
            target.write(data)
            await target.drain()
        with contextlib.suppress(OSError):
            target.write_eof()


def prove(run: Run) -> None:
    with zygote(run.source) as made, Server(run.folder, made, source=run.source) as server:
        server.start()
        asyncio.run(_post(run, server))


async def _post(run: Run, server: Server) -> None:
    token = server.token()
    direct = Client(server.port, token)
    sessions = [await direct.session(retention="keep") for _ in range(SESSIONS)]
    proxy = Proxy(server.port, run.random)
    async with proxy as port:
        client = Client(port, token)
        numbers = iter(range(run.size))

        async def work() -> None:
            for number in numbers:
                session = sessions[number % SESSIONS]
                await client.submit(session, f"echo {number}", f"key-{number}", wait=number % 7 == 0)
                if number % 50 == 0:
                    await _another_body(run, direct, session, f"key-{number}")
                run.progress(f"{number + 1} of {run.size} prompts, {proxy.cuts} cuts")

        await asyncio.gather(*(work() for _ in range(SESSIONS)))
    turns = 0
    prompts: Counter[str] = Counter()
    for session in sessions:
        found = await direct.wait_ended(session, 600)
        turns += len(found)
        prompts.update(turn["prompt"] for turn in found)
        bad = [turn for turn in found if turn["outcome"] != "completed"]
        run.check(not bad, f"{session[:8]}: {len(bad)} turns did not complete")
    run.check(turns == run.size, f"{turns} turns for {run.size} keys")
    run.check(set(prompts.values()) == {1}, f"twice: {[p for p, n in prompts.items() if n > 1][:5]}")
    received = heard(server.witness)
    run.check(received == prompts, f"the agents heard {sum(received.values())} prompts")
    run.check(proxy.cuts > run.size // 10, f"the proxy cut only {proxy.cuts} connections")
    run.figure(
        prompts=run.size, turns=turns, prompts_heard=sum(received.values()), connections_cut=proxy.cuts
    )


async def _another_body(run: Run, client: Client, session: str, key: str) -> None:
    reply = await client.call("POST", f"/sessions/{session}/turns", {"prompt": "echo other"}, key)
    run.check(reply.status == 409, f"the same key with another body is answered {reply.status}")
