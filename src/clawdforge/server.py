"""One server that has its parts, to its stop: its surfaces, and what it does beside requests."""

import asyncio
import contextlib
import shlex
import socket
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from clawdforge import __version__
from clawdforge.bounds import find_door_limits, find_introduce_secs
from clawdforge.by_name import load
from clawdforge.core.pacing.interpreter import collect_now_and_then, short_pauses
from clawdforge.core.running.idle import until_idle
from clawdforge.core.running.membership import LEASE
from clawdforge.core.services.access import LOCAL_APP
from clawdforge.drivers.acpx.driver import ITSELF as ACPX
from clawdforge.drivers.processes.callers import ProcCallers
from clawdforge.folder_lock import FolderLock
from clawdforge.http.app import build_asgi
from clawdforge.http.connections.door import Door
from clawdforge.http.connections.web_server import WebServer
from clawdforge.http.requests.bodies import BodyBudget
from clawdforge.http.settings import HttpSettings
from clawdforge.lifetime import Lifetime
from clawdforge.listeners import BACKLOG, operator_socket
from clawdforge.parts import Parts
from clawdforge.settings import Settings, is_loopback
from clawdforge.wire.errors import ForgeAPIError, StoreUnavailable
from clawdforge.wire.local import TOKEN_FILE

IDLE_LOOK_SECS = 5.0
TOKEN_USES_SECS = 60.0


async def serve_parts(
    settings: Settings,
    parts: Parts,
    listener: socket.socket,
    lock: FolderLock,
    url: str,
    lifetime: Lifetime,
) -> None:
    """Answer at the port, and at the operator's socket, until the lifetime ends."""
    with operator_socket(settings.data_dir) as operators:
        listeners = [listener, *([operators] if operators else [])]
        await _run(settings, parts, listeners, lock, url, lifetime)


async def _run(
    settings: Settings,
    parts: Parts,
    listeners: list[socket.socket],
    lock: FolderLock,
    url: str,
    lifetime: Lifetime,
) -> None:
    bodies = BodyBudget(settings.max_bodies_bytes)
    parts.services.metrics.watch("body_bytes", "Bytes of large bodies in memory.", lambda: bodies.held)
    http = HttpSettings(
        stopping=lifetime.stopping,
        bind_host=settings.host,
        allowed_hosts=settings.allowed_hosts,
        trust_loopback=settings.trust_loopback,
        hermes_prefix=settings.hermes_prefix,
        faces=settings.faces,
        mcp_decide=settings.mcp_decide,
        openai_chat_header=settings.openai_chat_header,
        openai_history=settings.openai_history,
        openai_permissions=settings.openai_permissions,
        max_body_bytes=settings.max_body_bytes,
        max_bodies_bytes=settings.max_bodies_bytes,
        max_file_bytes=settings.max_file_bytes,
        heartbeat_secs=settings.heartbeat_secs,
        request_secs=settings.request_timeout_secs,
        version=__version__,
        callers=ProcCallers(settings.data_dir),
        serve_editor=_find_editors(settings, url),
        admin_over_tcp=is_loopback(settings.host) or settings.admin_beyond_loopback,
    )
    door = Door(find_door_limits(settings))
    server = WebServer(build_asgi(parts.services, http, bodies), door, BACKLOG)
    beside, on_duty = parts.background, parts.membership.duty.do
    beside.finish("stopping", partial(_stop, settings, parts, server, lifetime))
    beside.finish("leaving when idle", partial(_leave_when_idle, settings, parts, server, lifetime))
    beside.finish("the look for programs", partial(_learn_versions, parts))
    beside.finish("the look for lost folders", parts.recovery.set_aside_unknown_folders)
    beside.keep("the door", door.watch)
    beside.keep("the collector", collect_now_and_then)
    beside.keep("putting agents to sleep", partial(parts.supervisor.sleep_idle, IDLE_LOOK_SECS))
    beside.keep("the sweeper", partial(on_duty, partial(parts.services.sweeper.run, settings.sweep_secs)))
    beside.keep("measuring folders", parts.meter.run)
    beside.keep("the finisher of histories", parts.services.finisher.run)
    if settings.pack_after_secs:
        beside.keep("the packer of events", partial(on_duty, parts.services.packer.run))
    beside.keep("webhooks", partial(on_duty, parts.services.courier.run))
    beside.keep("telling of turns", parts.services.telemetry.tell_turns)
    every = settings.otel_metrics_secs
    beside.keep("telling of metrics", partial(parts.services.telemetry.tell_metrics, every))
    beside.keep("schedules", partial(on_duty, parts.services.timekeeper.run))
    beside.keep("the uses of tokens", partial(parts.services.access.uses.run, TOKEN_USES_SECS))
    if not lifetime.stopping.is_set():
        await parts.recovery.wake_all()
        for listener in listeners:
            listener.listen(BACKLOG)
        lock.announce(url)
        _greet(settings, url)
    try:
        with short_pauses(), parts.services.watchdog.watching():
            await server.serve(sockets=listeners)
    finally:
        lifetime.end("the port is closed")
        await beside.stop(but=LEASE)  # which lasts until no agent is left: others may go on then
        if not lifetime.drained.is_set():
            await _drain(parts, 0)
        await parts.services.telemetry.finish()
        with contextlib.suppress(ForgeAPIError):  # a full disk must not keep the server from stopping
            await parts.services.access.uses.write()


def _find_editors(settings: Settings, url: str) -> Callable[[Any], Awaitable[None]] | None:
    if "acp" not in settings.faces:
        return None
    serve: Callable[[Any], Awaitable[None]] = load("clawdforge.editors:editors_of")(
        url, find_introduce_secs(settings)
    )
    return serve


async def _stop(settings: Settings, parts: Parts, server: WebServer, lifetime: Lifetime) -> None:
    """No new turns from now on; running ones get some time, then they are interrupted.

    Where other servers live, they get the sessions: each at its boundary, with what waits in it.
    """
    await lifetime.stopping.wait()
    parts.services.health.stopping = True
    deadline = asyncio.get_running_loop().time() + settings.stop_grace_secs
    with contextlib.suppress(TimeoutError, StoreUnavailable):
        async with asyncio.timeout_at(deadline):
            if await parts.services.nodes.leave():
                await parts.wishes.until_drained()
    await _drain(parts, max(0.0, deadline - asyncio.get_running_loop().time()))
    lifetime.drained.set()
    server.should_exit = True


async def _learn_versions(parts: Parts) -> None:
    parts.services.health.learn(acpx_version=await parts.catalog.version(ACPX))
    await parts.catalog.probe()


async def _leave_when_idle(settings: Settings, parts: Parts, server: WebServer, lifetime: Lifetime) -> None:
    if settings.idle_exit is None:
        return
    state = server.server_state
    await until_idle(
        settings.idle_exit,
        lambda: state.total_requests,
        lambda: bool(state.tasks) or not parts.supervisor.is_idle or parts.services.timekeeper.has_some,
    )
    lifetime.end(f"nobody has asked anything for {settings.idle_exit:g} s")


async def _drain(parts: Parts, grace: float) -> None:
    await asyncio.gather(parts.supervisor.stop(grace), parts.services.runs.stop(grace))


def describe_reach(settings: Settings, url: str) -> str:
    """Who can connect, where that is not this machine alone; nothing otherwise."""
    if is_loopback(settings.host):
        return ""
    port = url.rpartition(":")[2]
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return (
        f"  WARNING it listens on {host}:{port}: other machines can connect, and without TLS whoever is on\n"
        "          the way reads tokens and conversations. Listen on 127.0.0.1 behind a proxy with TLS:\n"
        "          docs/guides/proxy.md\n"
    )


def _greet(settings: Settings, url: str) -> None:
    """What a newcomer needs next. The lines with curl can be copied as they are."""
    token = settings.data_dir / TOKEN_FILE
    picks = """grep -o '"session_id":"[^"]*' | cut -d'"' -f4"""
    asks = "-H 'Accept: text/event-stream' -H 'Content-Type: application/json'"
    sys.stdout.write(
        f"clawdforge {__version__} on {url}\n"
        f"{describe_reach(settings, url)}"
        f"  data    {settings.data_dir}\n"
        f"  token   {token}  (app {LOCAL_APP})\n"
        f"  routes  {url}/openapi.json; `clawdforge token create APP` makes a token for your program\n"
        "A first answer, in another terminal:\n"
        f'  AUTH="Authorization: Bearer $(cat {shlex.quote(str(token))})"\n'
        f'  ID=$(curl -s -X POST {url}/sessions -H "$AUTH" | {picks})\n'
        f'  curl -sN {url}/sessions/$ID/turn -H "$AUTH" {asks} -d \'{{"prompt": "Say hello."}}\'\n'
    )
    sys.stdout.flush()
