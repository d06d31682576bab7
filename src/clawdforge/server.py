"""The composition root: the only place that knows which store, drivers and surfaces make one server."""

import asyncio
import contextlib
import logging
import os
import shlex
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import uvicorn

from clawdforge import __version__, logs
from clawdforge.core.model import SystemClock, new_id, new_token
from clawdforge.core.ports import Driver
from clawdforge.core.running.attendant import Times
from clawdforge.core.running.idle import until_idle
from clawdforge.core.running.recovery import RecoveryService
from clawdforge.core.running.supervisor import Supervisor
from clawdforge.core.services.access import LOCAL_APP
from clawdforge.core.services.all import Bounds, Ports, Services, build_engine, build_services
from clawdforge.core.services.sweeper import Ages
from clawdforge.drivers.acp.driver import AcpDriver, AcpLimits
from clawdforge.drivers.acpx.driver import ITSELF as ACPX
from clawdforge.drivers.acpx.driver import AcpxDriver
from clawdforge.drivers.claude_print import ClaudePrint
from clawdforge.drivers.folders.homes import HomeFolders
from clawdforge.drivers.folders.snapshots import Snapshots
from clawdforge.drivers.folders.workspaces import Workspaces
from clawdforge.drivers.processes.cgroups import Ceilings, Groups, find_cgroups
from clawdforge.drivers.processes.containment import Containment, harden_self, probe
from clawdforge.drivers.processes.helpers import Helpers
from clawdforge.drivers.processes.spawner import Spawner
from clawdforge.drivers.registry.catalog import AgentCatalog
from clawdforge.drivers.registry.registry import Registry, is_installed
from clawdforge.http.app import build_asgi
from clawdforge.http.settings import HttpSettings
from clawdforge.lifetime import Lifetime
from clawdforge.settings import Settings, keep_secret
from clawdforge.stores import open_store
from clawdforge.stores.lock import FolderLock, FolderTaken
from clawdforge.stores.uploads import UploadFolder
from clawdforge.wire.errors import ForgeAPIError
from clawdforge.wire.local import TOKEN_FILE

log = logging.getLogger(__name__)
IDLE_LOOK_SECS = 5.0


@dataclass(frozen=True)
class Parts:
    """A server that has recovered and could open its port."""

    services: Services
    supervisor: Supervisor
    recovery: RecoveryService
    catalog: AgentCatalog


@contextlib.asynccontextmanager
async def open_parts(settings: Settings) -> AsyncIterator[Parts]:
    """Everything but the port. The caller holds the data folder's lock."""
    clock, boot = SystemClock(), new_id()
    async with contextlib.AsyncExitStack() as ends:
        store = await open_store(settings.data_dir, clock)
        ends.push_async_callback(store.close)
        spawner, groups = await _open_spawner(settings, boot)
        homes = HomeFolders(
            settings.data_dir, max_copies=settings.home_copies, max_bytes=settings.home_copy_bytes
        )
        ends.push_async_callback(homes.close)
        registry = _build_registry(settings, spawner)
        catalog = AgentCatalog(registry, spawner, os.environ)
        program = _build_program(settings, spawner, registry)
        workspaces = Workspaces(settings.data_dir, settings.workspace_roots)
        ports = Ports(
            store=store,
            clock=clock,
            agents=registry,
            catalog=catalog,
            homes=homes,
            snapshots=Snapshots(settings.data_dir, Helpers(spawner.containment.bwrap)),
            workspaces=workspaces,
            uploads=UploadFolder(settings.data_dir),
            program=program,
        )
        bounds = _bounds(settings)
        engine = build_engine(ports, bounds, boot)
        facts = _facts(settings, spawner.containment, groups)
        services = build_services(ports, bounds, engine, _admin_token(settings), facts)
        recovery = RecoveryService(store, clock, engine.supervisor, (homes, workspaces))
        await asyncio.to_thread(homes.clean_up_unfinished)
        await asyncio.to_thread(program.clean_up_unfinished)
        await _recover(settings, services, recovery)
        yield Parts(services, engine.supervisor, recovery, catalog)


async def _open_spawner(settings: Settings, boot: str) -> tuple[Spawner, Groups]:
    """What starts programs, held as well as this machine can. Those of an earlier server are ended."""
    containment = await asyncio.to_thread(probe, settings.sandbox)
    groups = await asyncio.to_thread(find_cgroups, settings.data_dir, boot, _ceilings(settings))
    if None in (groups.processes, groups.memory):
        log.warning("agents are not held to all limits: %s; see `clawdforge doctor`", groups.details)
    spawner = Spawner(containment, settings.data_dir, boot, groups=groups)
    await spawner.end_orphans()
    return spawner, groups


def _build_registry(settings: Settings, spawner: Spawner) -> Registry:
    limits = AcpLimits(
        max_line_bytes=settings.max_line_bytes,
        max_turn_bytes=settings.max_turn_bytes,
        start_timeout=settings.agent_start_secs,
    )
    drivers: dict[str, Driver] = {
        "acp": AcpDriver(spawner, os.environ, limits),
        "acpx": AcpxDriver(spawner, os.environ, limits),
    }
    changes = {name: dict(change) for name, change in settings.agents.items()}
    return Registry(drivers, changes, settings.default_agent)


def _build_program(settings: Settings, spawner: Spawner, registry: Registry) -> ClaudePrint:
    return ClaudePrint(
        spawner,
        os.environ,
        registry.spec("claude"),
        settings.claude_bin,
        settings.data_dir / "runs",
        max_bytes=settings.max_line_bytes,
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
    await recovery.note_folders()


def _admin_token(settings: Settings) -> str:
    return settings.admin_token or keep_secret(settings.admin_token_file, new_token("cfa_"))


def _bounds(settings: Settings) -> Bounds:
    return Bounds(
        live_agents=settings.max_live_agents,
        live_sessions=settings.max_live_sessions,
        file_bytes=settings.max_file_bytes,
        agent_idle_secs=settings.agent_idle_secs,
        permission_secs=settings.permission_timeout_secs,
        times=Times(turn=settings.turn_timeout_secs, cancel_grace=settings.cancel_grace_secs),
        ages=Ages(
            idle=settings.session_ttl_secs,
            closed=settings.session_hard_ttl_secs,
            upload=settings.file_ttl_secs,
        ),
    )


def _ceilings(settings: Settings) -> Ceilings:
    return Ceilings(processes=settings.agent_max_processes, memory=settings.agent_max_memory_bytes)


def _facts(settings: Settings, containment: Containment, groups: Groups) -> dict[str, object]:
    return {
        "version": __version__,
        "acpx_present": is_installed(ACPX),
        "acpx_version": None,
        "sandbox": containment.active,
        "agent_max_processes": groups.processes,
        "agent_max_memory_bytes": groups.memory,
        "agent_limits": groups.reason,
        "trust_loopback": settings.trust_loopback,
    }


async def _learn_versions(parts: Parts) -> None:
    parts.services.health.learn(acpx_version=await parts.catalog.version(ACPX))
    await parts.catalog.probe()


class Server(uvicorn.Server):
    """uvicorn without its own signal handlers: stopping is ours to order."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def run(settings: Settings) -> int:
    """`serve` in an event loop of its own: Python's, which closes every descriptor once."""
    with asyncio.Runner() as runner:
        return runner.run(serve(settings))


async def serve(settings: Settings) -> int:
    """Run until a signal comes; the exit code."""
    os.umask(0o077)
    harden_self()
    logs.start(settings.log_level, [settings.admin_token or ""])
    lifetime = Lifetime()
    try:
        lock = FolderLock.acquire(settings.data_dir, "", os.getpid())
    except FolderTaken as error:
        sys.stderr.write(f"clawdforge: {error.message}\n")
        return 1
    try:
        listener = _bind(settings)
    except OSError as error:
        sys.stderr.write(
            f"clawdforge: cannot listen on {settings.host}:{settings.port}: {error.strerror}; "
            "name another port with --port, or 0 for a free one\n"
        )
        return 1
    url = _url(settings, listener)
    try:
        async with open_parts(settings) as parts:
            await _run(settings, parts, listener, lock, url, lifetime)
    except ForgeAPIError as error:
        sys.stderr.write(f"clawdforge: {error.message}\n")
        return 1
    finally:
        listener.close()
        lock.release()
    return 0


async def _run(
    settings: Settings,
    parts: Parts,
    listener: socket.socket,
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
        max_body_bytes=settings.max_body_bytes,
        max_file_bytes=settings.max_file_bytes,
        heartbeat_secs=settings.heartbeat_secs,
        version=__version__,
    )
    server = Server(
        uvicorn.Config(
            build_asgi(parts.services, http),
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=2,
        )
    )
    beside = [
        asyncio.create_task(work)
        for work in (
            _stop(settings, parts, server, lifetime),
            _leave_when_idle(settings, parts, server, lifetime),
            parts.supervisor.sleep_idle(IDLE_LOOK_SECS),
            parts.services.sweeper.run(settings.sweep_secs),
            _learn_versions(parts),
            parts.recovery.remove_unknown_folders(),
        )
    ]
    if not lifetime.stopping.is_set():
        await parts.recovery.wake_all()
        listener.listen(1024)
        lock.announce(url)
        _greet(settings, url)
    try:
        await server.serve(sockets=[listener])
    finally:
        lifetime.stopping.set()
        for task in beside:
            task.cancel()
        await asyncio.wait(beside)
        await _drain(parts, 0)


async def _stop(settings: Settings, parts: Parts, server: Server, lifetime: Lifetime) -> None:
    """No new turns from now on; running ones get some time, then they are interrupted."""
    await lifetime.stopping.wait()
    parts.services.health.stopping = True
    await _drain(parts, settings.stop_grace_secs)
    server.should_exit = True


async def _leave_when_idle(settings: Settings, parts: Parts, server: Server, lifetime: Lifetime) -> None:
    if settings.idle_exit is None:
        return
    state = server.server_state
    await until_idle(
        settings.idle_exit,
        lambda: state.total_requests,
        lambda: bool(state.tasks) or not parts.supervisor.is_idle,
    )
    lifetime.end(f"nobody has asked anything for {settings.idle_exit:g} s")


async def _drain(parts: Parts, grace: float) -> None:
    await asyncio.gather(parts.supervisor.stop(grace), parts.services.runs.stop(grace))


def _bind(settings: Settings) -> socket.socket:
    """The address is ours from now on, but nobody can connect before we listen."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # With the protocol named, the event loop sets TCP_NODELAY; without, an answer waits 40 ms for an ack.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError:
        listener.close()
        raise
    return listener


def _url(settings: Settings, listener: socket.socket) -> str:
    host = settings.host if settings.host not in ("0.0.0.0", "::") else "127.0.0.1"  # noqa: S104 - compared
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}"


def _greet(settings: Settings, url: str) -> None:
    """What a newcomer needs next. The lines with curl can be copied as they are."""
    token = settings.data_dir / TOKEN_FILE
    picks = """grep -o '"session_id":"[^"]*' | cut -d'"' -f4"""
    asks = "-H 'Accept: text/event-stream' -H 'Content-Type: application/json'"
    sys.stdout.write(
        f"clawdforge {__version__} on {url}\n"
        f"  data    {settings.data_dir}\n"
        f"  token   {token}  (app {LOCAL_APP})\n"
        f"  routes  {url}/openapi.json; `clawdforge token create APP` makes a token for your program\n"
        "A first answer, in another terminal:\n"
        f'  AUTH="Authorization: Bearer $(cat {shlex.quote(str(token))})"\n'
        f'  ID=$(curl -s -X POST {url}/sessions -H "$AUTH" | {picks})\n'
        f'  curl -sN {url}/sessions/$ID/turn -H "$AUTH" {asks} -d \'{{"prompt": "Say hello."}}\'\n'
    )
    sys.stdout.flush()
