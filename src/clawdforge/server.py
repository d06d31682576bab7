"""The composition root: the only place that knows which store, drivers and surfaces make one server."""

import asyncio
import contextlib
import logging
import os
import shlex
import socket
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial

from clawdforge import __version__, logs
from clawdforge.bounds import find_bounds, find_ceilings, find_door_limits
from clawdforge.by_name import load
from clawdforge.core.callbacks import CallbackTokens
from clawdforge.core.interpreter import short_pauses
from clawdforge.core.mcp_model import OperatorServers
from clawdforge.core.model import SystemClock, new_id, new_token
from clawdforge.core.pace import Pace
from clawdforge.core.ports import Driver
from clawdforge.core.running.background import Background
from clawdforge.core.running.idle import until_idle
from clawdforge.core.running.meter import Meter
from clawdforge.core.running.recovery import RecoveryService
from clawdforge.core.running.supervisor import Supervisor
from clawdforge.core.services.access import LOCAL_APP
from clawdforge.core.services.all import Ports, Services, build_engine, build_services
from clawdforge.drivers.acp.driver import AcpDriver
from clawdforge.drivers.acp.limits import AcpLimits
from clawdforge.drivers.acpx.driver import ITSELF as ACPX
from clawdforge.drivers.acpx.driver import AcpxDriver
from clawdforge.drivers.claude_print import ClaudePrint
from clawdforge.drivers.folders.homes import HomeFolders
from clawdforge.drivers.folders.ownership import Ownership
from clawdforge.drivers.folders.sizes import SessionSizes
from clawdforge.drivers.folders.snapshots import Snapshots
from clawdforge.drivers.folders.trees import Trees
from clawdforge.drivers.folders.workspaces import Workspaces
from clawdforge.drivers.processes.callers import ProcCallers
from clawdforge.drivers.processes.cgroups import Groups, find_cgroups
from clawdforge.drivers.processes.containment import Containment, find_containment, harden_self
from clawdforge.drivers.processes.helpers import Helpers
from clawdforge.drivers.processes.network import Networks
from clawdforge.drivers.processes.spawner import Spawner
from clawdforge.drivers.processes.user_wall import try_users
from clawdforge.drivers.registry.catalog import AgentCatalog
from clawdforge.drivers.registry.registry import Registry, is_installed
from clawdforge.http.app import build_asgi
from clawdforge.http.door import Door
from clawdforge.http.settings import HttpSettings
from clawdforge.http.web_server import WebServer
from clawdforge.lacks import explain_lack
from clawdforge.lifetime import LAST_SECS, Lifetime
from clawdforge.listeners import (
    BACKLOG,
    bind_port,
    operator_socket,
    url_of,
)
from clawdforge.outbound import open_outbound
from clawdforge.settings import Settings, is_loopback, keep_secret
from clawdforge.stores import open_store
from clawdforge.stores.lock import FolderLock
from clawdforge.stores.uploads import UploadFolder
from clawdforge.telemetry.loading import open_telemetry
from clawdforge.wire.errors import ForgeAPIError
from clawdforge.wire.local import TOKEN_FILE

log = logging.getLogger(__name__)
IDLE_LOOK_SECS = 5.0
TOKEN_USES_SECS = 60.0


@dataclass(frozen=True)
class Parts:
    """A server that has recovered and could open its port."""

    services: Services
    supervisor: Supervisor
    meter: Meter
    recovery: RecoveryService
    background: Background
    catalog: AgentCatalog


@contextlib.asynccontextmanager
async def open_parts(settings: Settings, url: str = "", port: int | None = None) -> AsyncIterator[Parts]:
    """Everything but the port, which is told as `url`. The caller holds the data folder's lock.

    An agent behind our proxy may not reach that port.
    """
    clock, boot = SystemClock(), new_id()
    async with contextlib.AsyncExitStack() as ends:
        homes = HomeFolders(
            settings.data_dir, max_copies=settings.home_copies, max_bytes=settings.home_copy_bytes
        )
        store = await open_store(settings.data_dir, clock, len(await asyncio.to_thread(homes.names)))
        ends.push_async_callback(store.close)
        networks = Networks(settings.agent_network, settings.agent_hosts, port)
        ends.callback(networks.close)
        spawner, groups = await _open_spawner(settings, boot, networks)
        ownership = Ownership.find(settings.data_dir, spawner.containment, settings.agent_uids)
        made = str(settings.data_dir / "workspaces")
        spawner.note_written(await store.read_system(lambda view: view.named_folders(made)))
        ends.push_async_callback(homes.close)
        pace = Pace()
        registry = _build_registry(settings, spawner, ownership, pace)
        catalog = AgentCatalog(registry, spawner, os.environ)
        program = _build_program(settings, spawner, registry, ownership)
        workspaces = Workspaces(settings.data_dir, settings.workspace_roots)
        helpers = Helpers(spawner.containment.bwrap, spawner.containment.walls, groups)
        ports = Ports(
            store=store,
            clock=clock,
            agents=registry,
            catalog=catalog,
            homes=homes,
            snapshots=Snapshots(settings.data_dir, helpers),
            trees=Trees(settings.data_dir, helpers),
            workspaces=workspaces,
            sizes=SessionSizes(settings.data_dir),
            uploads=UploadFolder(settings.data_dir.resolve()),
            program=program,
            callbacks=CallbackTokens(url),
            pace=pace,
            mcp=_operator_servers(settings),
            receivers=ends.enter_context(open_outbound(settings.webhook_hosts))
            if settings.webhooks
            else None,
            telemetry=await ends.enter_async_context(
                open_telemetry(settings.otel_endpoint, settings.otel_headers, settings.otel_content, boot)
            ),
            has_schedules=settings.schedules,
        )
        bounds = find_bounds(settings)
        engine = build_engine(ports, bounds, boot)
        facts = _facts(settings, spawner.containment, groups)
        services = build_services(ports, bounds, engine, _admin_token(settings), facts)
        recovery = RecoveryService(store, clock, engine.supervisor, (homes, workspaces))
        await asyncio.to_thread(homes.clean_up_unfinished)
        await asyncio.to_thread(program.clean_up_unfinished)
        await recovery.notice_move(workspaces)
        await _recover(settings, services, recovery)
        yield Parts(services, engine.supervisor, engine.meter, recovery, engine.background, catalog)


def _operator_servers(settings: Settings) -> OperatorServers:
    servers = {name: (one, frozenset(one.apps)) for name, one in settings.mcp_servers.items()}
    return OperatorServers(servers, os.environ)


async def _open_spawner(settings: Settings, boot: str, networks: Networks) -> tuple[Spawner, Groups]:
    """What starts programs, held as well as this machine can. Those of an earlier server are ended."""
    found = await asyncio.to_thread(find_containment, settings.sandbox)
    containment = await asyncio.to_thread(try_users, found, settings.agent_uids, settings.data_dir)
    if settings.sandbox != "off" and containment.bwrap is None:
        log.warning("%s", containment.describe_lack())
    groups = await asyncio.to_thread(find_cgroups, settings.data_dir, boot, find_ceilings(settings))
    if None in (groups.processes, groups.memory):
        log.warning("agents are not held to all limits: %s; see `clawdforge doctor`", groups.details)
    spawner = Spawner(containment, settings.data_dir, boot, groups=groups, networks=networks)
    await spawner.end_orphans()
    return spawner, groups


def _build_registry(settings: Settings, spawner: Spawner, ownership: Ownership, pace: Pace) -> Registry:
    limits = AcpLimits(
        max_line_bytes=settings.max_line_bytes,
        max_turn_bytes=settings.max_turn_bytes,
        start_timeout=settings.agent_start_secs,
    )
    drivers: dict[str, Driver] = {
        "acp": AcpDriver(spawner, os.environ, limits, ownership=ownership, pace=pace),
        "acpx": AcpxDriver(spawner, os.environ, limits, ownership=ownership, pace=pace),
    }
    changes = {name: dict(change) for name, change in settings.agents.items()}
    return Registry(drivers, changes, settings.default_agent)


def _build_program(
    settings: Settings, spawner: Spawner, registry: Registry, ownership: Ownership
) -> ClaudePrint:
    return ClaudePrint(
        spawner,
        os.environ,
        registry.spec("claude"),
        settings.claude_bin,
        settings.data_dir / "runs",
        max_bytes=settings.max_line_bytes,
        ownership=ownership,
    )


async def _recover(settings: Settings, services: Services, recovery: RecoveryService) -> None:
    """What a dead server left behind is put in order before anybody can ask for it."""
    await services.files.finish_pending()
    await services.access.adopt(LOCAL_APP, keep_secret(settings.data_dir / TOKEN_FILE, new_token("cf_")))
    interrupted = await recovery.end_interrupted_turns()
    if interrupted:
        log.warning(
            "%d turns were cut off when the last server stopped; they are marked interrupted", interrupted
        )
    await recovery.settle_lost_runs()
    await recovery.note_folders()


def _admin_token(settings: Settings) -> str:
    return settings.admin_token or keep_secret(settings.admin_token_file, new_token("cfa_"))


def _facts(settings: Settings, containment: Containment, groups: Groups) -> dict[str, object]:
    return {
        "version": __version__,
        "acpx_present": is_installed(ACPX),
        "acpx_version": None,
        "sandbox": containment.active,
        "sandbox_reason": containment.reason.partition(":")[0],  # anybody may ask; the rest is in the log
        "sandbox_walls": list(containment.wall_names),
        "agent_max_processes": groups.processes,
        "agent_max_memory_bytes": groups.memory,
        "agent_limits": groups.reason,
        "trust_loopback": settings.trust_loopback,
    }


async def _learn_versions(parts: Parts) -> None:
    parts.services.health.learn(acpx_version=await parts.catalog.version(ACPX))
    await parts.catalog.probe()


def run(settings: Settings) -> int:
    """`serve` in an event loop of its own: Python's, which closes every descriptor once."""
    with asyncio.Runner() as runner:
        return runner.run(serve(settings))


async def serve(settings: Settings) -> int:
    """Run until a signal comes; the exit code."""
    os.umask(0o077)
    harden_self()
    try:
        _start_log(settings)
    except OSError as error:
        return _refuse(f"the log file {settings.log_file} cannot be written ({error.strerror}); name another")
    lifetime = Lifetime(settings.stop_grace_secs + LAST_SECS)
    async with contextlib.AsyncExitStack() as ends:
        try:
            lock = FolderLock.acquire(settings.data_dir, "", os.getpid())
            ends.callback(lock.release)
            listener = bind_port(settings)
            ends.callback(listener.close)
            url = url_of(settings, listener)
            parts = await ends.enter_async_context(open_parts(settings, url, listener.getsockname()[1]))
        except ForgeAPIError as error:
            return _refuse(error.message)
        except OSError as error:
            return _refuse(explain_lack(error, settings.data_dir))
        operators = ends.enter_context(operator_socket(settings.data_dir))
        listeners = [listener, *([operators] if operators else [])]
        await _run(settings, parts, listeners, lock, url, lifetime)
    return 0


def _start_log(settings: Settings) -> None:
    file = logs.open_file(settings.log_file, settings.log_file_bytes) if settings.log_file else None
    logs.start(settings.log_level, [settings.admin_token or ""], handler=file)


def _refuse(message: str) -> int:
    """Say why there will be no server; the exit code."""
    sys.stderr.write(f"clawdforge: {message}\n")
    return 1


async def _run(
    settings: Settings,
    parts: Parts,
    listeners: list[socket.socket],
    lock: FolderLock,
    url: str,
    lifetime: Lifetime,
) -> None:
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
        serve_editor=load("clawdforge.editors:editors_of")(url) if "acp" in settings.faces else None,
        admin_over_tcp=is_loopback(settings.host) or settings.admin_beyond_loopback,
    )
    door = Door(find_door_limits(settings))
    server = WebServer(build_asgi(parts.services, http), door, BACKLOG)
    beside = parts.background
    beside.finish("stopping", partial(_stop, settings, parts, server, lifetime))
    beside.finish("leaving when idle", partial(_leave_when_idle, settings, parts, server, lifetime))
    beside.finish("the look for programs", partial(_learn_versions, parts))
    beside.finish("the look for lost folders", parts.recovery.set_aside_unknown_folders)
    beside.keep("the door", door.watch)
    beside.keep("putting agents to sleep", partial(parts.supervisor.sleep_idle, IDLE_LOOK_SECS))
    beside.keep("the sweeper", partial(parts.services.sweeper.run, settings.sweep_secs))
    beside.keep("measuring folders", parts.meter.run)
    beside.keep("the settler of histories", parts.services.settler.run)
    if settings.pack_after_secs:
        beside.keep("the packer of events", parts.services.packer.run)
    beside.keep("webhooks", parts.services.courier.run)
    beside.keep("telling of turns", parts.services.telemetry.tell_turns)
    every = settings.otel_metrics_secs
    beside.keep("telling of metrics", partial(parts.services.telemetry.tell_metrics, every))
    beside.keep("schedules", parts.services.timekeeper.run)
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
        await beside.stop()
        if not lifetime.drained.is_set():
            await _drain(parts, 0)
        await parts.services.telemetry.finish()
        with contextlib.suppress(ForgeAPIError):  # a full disk must not keep the server from stopping
            await parts.services.access.uses.write()


async def _stop(settings: Settings, parts: Parts, server: WebServer, lifetime: Lifetime) -> None:
    """No new turns from now on; running ones get some time, then they are interrupted."""
    await lifetime.stopping.wait()
    parts.services.health.stopping = True
    await _drain(parts, settings.stop_grace_secs)
    lifetime.drained.set()
    server.should_exit = True


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
