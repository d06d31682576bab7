"""Readers: hundreds that are cut and resume through restarts, some that never read, many that hang up."""

import asyncio
import socket
import statistics
import struct

from proofs.kit.client import Client, Reader, digest
from proofs.kit.history import check, fetch
from proofs.kit.http import head
from proofs.kit.report import Run
from proofs.kit.server import Server, Stuck, zygote

SHORT, FULL = 100, 15_000
RESET = struct.pack("ii", 1, 0)


def prove(run: Run) -> None:
    """`size` is the number of forced reconnects; the other numbers follow from it."""
    env = {"CLAWDFORGE_HEARTBEAT_SECS": "0.2"}
    with zygote(run.source) as made:
        with Server(run.folder / "resume", made, source=run.source, env=env) as server:
            server.start()
            asyncio.run(_resume(run, server))
        with Server(run.folder / "rude", made, source=run.source, env=env) as server:
            server.start()
            asyncio.run(_run_rude_readers(run, server))


async def _resume(run: Run, server: Server) -> None:
    count, restarts = (24, 1) if run.short else (500, 5)
    client = Client(server.port, server.token())
    sessions = [await client.session(retention="keep") for _ in range(8 if run.short else 20)]
    busy = sessions[len(sessions) // 2 :]  # the others have one reader each: nobody else keeps them in memory
    readers = [Reader(client, session) for session in sessions]
    readers += [Reader(client, busy[n % len(busy)], keep=False) for n in range(count - len(sessions))]
    working = True

    def leave(seen: int) -> bool:
        return working and seen > 0 and run.random.random() < 0.25

    tasks = [asyncio.create_task(reader.follow(leave)) for reader in readers]

    async def load(number: int, session: str) -> None:
        turn = 0
        while working:
            turn += 1
            await client.submit(session, f"chunks 80 40 10\necho {number}.{turn}", f"k{turn}")
            await client.wait_ended(session)
            await asyncio.sleep(run.random.uniform(0, 0.5))

    loads = [asyncio.create_task(load(number, session)) for number, session in enumerate(sessions)]
    done = 0

    def reconnects() -> int:
        return sum(reader.drops for reader in readers)

    while reconnects() < run.size:
        await asyncio.sleep(0.05)
        if done < restarts and reconnects() > run.size * (done + 1) / (restarts + 1):
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
            done += 1
        run.progress(f"{reconnects()} of {run.size} reconnects, {done} restarts")
        for task in (*tasks, *loads):
            if task.done():
                await task
    working = False
    await asyncio.gather(*loads)
    await _compare(run, client, readers)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    run.figure(
        readers=count,
        forced_reconnects=reconnects(),
        restarts=done,
        events_read=sum(reader.last for reader in readers),
    )


async def _compare(run: Run, client: Client, readers: list[Reader]) -> None:
    """All readers of a session have seen the same bytes, and these are the log."""
    for session in {reader.session for reader in readers}:
        history = await fetch(client, session)
        mine = [reader for reader in readers if reader.session == session]
        for reader in mine:
            await reader.until(len(history.events))
        history.copy = next(reader.copy for reader in mine if reader.keep)
        stored = [digest(data) for data in history.copy]
        for fault in check(history):
            run.violate(fault)
        for reader in mine:
            for fault in reader.faults:
                run.violate(fault)
            seen = [digest(data) for data in reader.copy] if reader.keep else list(reader.copy)
            run.check(seen == stored, f"a reader of {session[:8]} saw {len(seen)} of {len(stored)} events")


async def _run_rude_readers(run: Run, server: Server) -> None:
    """Some readers never read and many hang up. Others must not notice, and all resources must be freed."""
    silent, rude = (20, 100) if run.short else (200, max(200, run.size * 2 // 3))
    client = Client(server.port, server.token())
    session = await client.session(retention="keep")
    await client.submit(session, "flood 1500 2000", "flood")
    await client.wait_ended(session)
    quiet = await client.session(retention="keep")
    honest = Reader(client, quiet)
    task = asyncio.create_task(honest.follow())
    await client.submit(quiet, "echo warm", "warm")
    await client.wait_ended(quiet)
    await _hang_up(server, client, session, 50)
    await asyncio.sleep(1)
    before = server.rss(), server.fds()
    sockets = [await _connect(server, client, session) for _ in range(silent)]
    latencies: list[float] = []
    for batch in range(rude // 50):
        await _hang_up(server, client, session, 50)
        latencies.append(await _latency(client, quiet, honest, batch))
        run.progress(
            f"{(batch + 1) * 50} of {rude} hung up, {server.rss() >> 20} MiB, {server.fds()} descriptors"
        )
    peak = server.rss()
    for sock in sockets:
        sock.close()
    await _check_given_back(run, server, before[1])
    task.cancel()
    run.check(server.rss() - before[0] < 80 << 20, f"memory grew by {server.rss() - before[0] >> 20} MiB")
    run.figure(
        never_reading=silent,
        hung_up=rude,
        memory_mib=f"{before[0] >> 20} before, {peak >> 20} at the worst, {server.rss() >> 20} after",
        descriptors=f"{before[1]} before, {server.fds()} after",
        honest_turn_secs_p50=round(statistics.median(latencies), 3),
        honest_turn_secs_max=round(max(latencies), 3),
    )


async def _check_given_back(run: Run, server: Server, fds: int) -> None:
    for _ in range(200):
        if server.fds() <= fds + 2:
            return
        await asyncio.sleep(0.05)
    run.violate(f"10 s after the last reader left there are {server.fds()} descriptors, {fds} before")


async def _connect(server: Server, client: Client, session: str) -> socket.socket:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(sock, ("127.0.0.1", server.port))
    ask = head("GET", f"/sessions/{session}/events", client.token, None, {"Accept": "text/event-stream"})
    await loop.sock_sendall(sock, ask)
    return sock


async def _hang_up(server: Server, client: Client, session: str, count: int) -> None:
    sockets = [await _connect(server, client, session) for _ in range(count)]
    for number, sock in enumerate(sockets):
        if number % 3 == 0:
            await asyncio.wait_for(asyncio.get_running_loop().sock_recv(sock, 100), 30)
        if number % 2:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        sock.close()


async def _latency(client: Client, session: str, reader: Reader, number: int) -> float:
    """From a prompt to its end at a reader that reads."""
    loop = asyncio.get_running_loop()
    began, seen = loop.time(), reader.last
    await client.submit(session, f"echo {number}", f"h{number}")
    while not any(b'"turn.ended"' in data for data in reader.copy[seen:]):
        if loop.time() - began > 20:
            raise Stuck("an honest reader was starved for 20 s")
        await asyncio.sleep(0.005)
    return loop.time() - began
