"""Puts the parts of one server together: the only place that knows which store and drivers it has."""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar, cast

from clawdforge import __version__
from clawdforge.bounds import find_bounds
from clawdforge.core.callbacks import CallbackTokens
from clawdforge.core.clock import Clock, SystemClock
from clawdforge.core.ids import new_id, new_token
from clawdforge.core.models.mcp import OperatorServers
from clawdforge.core.models.nodes import Telling, WishKind
from clawdforge.core.pacing.pace import Pace
from clawdforge.core.ports import Driver, Store
from clawdforge.core.ports.shared_files import Sharing
from clawdforge.core.ports.threads import GraphThreads
from clawdforge.core.running.background import Background
from clawdforge.core.running.graph_homes import GraphHomes
from clawdforge.core.running.membership import LEASE, Membership
from clawdforge.core.running.meter import Meter
from clawdforge.core.running.recovery import RecoveryService
from clawdforge.core.running.supervisor import Supervisor
from clawdforge.core.running.wishes import Errand, Wishes
from clawdforge.core.services.access import LOCAL_APP
from clawdforge.core.services.all import Engine, Ports, Services, build_engine, build_services
from clawdforge.drivers.acp.driver import AcpDriver
from clawdforge.drivers.acp.limits import AcpLimits
from clawdforge.drivers.acpx.driver import ITSELF as ACPX
from clawdforge.drivers.acpx.driver import AcpxDriver
from clawdforge.drivers.claude_print import ClaudePrint
from clawdforge.drivers.folders.homes import HomeFolders
from clawdforge.drivers.folders.ownership import Ownership
from clawdforge.drivers.folders.shared_trees import SharedTrees
from clawdforge.drivers.folders.sizes import SessionSizes
from clawdforge.drivers.folders.snapshots import Snapshots
from clawdforge.drivers.folders.trees import Trees
from clawdforge.drivers.folders.workspaces import Workspaces
from clawdforge.drivers.processes.cgroups import Groups
from clawdforge.drivers.processes.containment import Containment
from clawdforge.drivers.processes.guarding import Guard
from clawdforge.drivers.processes.helpers import Helpers
from clawdforge.drivers.processes.network import Networks
from clawdforge.drivers.processes.spawner import Spawner
from clawdforge.drivers.registry.catalog import AgentCatalog
from clawdforge.drivers.registry.registry import Registry, is_installed
from clawdforge.machine import Machine, find_machine
from clawdforge.outbound import open_outbound
from clawdforge.settings import Settings, keep_secret
from clawdforge.settings.shared import digest_shared
from clawdforge.stores import open_database, open_graph_threads, open_store
from clawdforge.stores.blobs.opening import open_places
from clawdforge.stores.uploads import UploadFolder
from clawdforge.telemetry.loading import open_telemetry
from clawdforge.wire.base import Json
from clawdforge.wire.local import TOKEN_FILE

log = logging.getLogger(__name__)
One = TypeVar("One")
Other = TypeVar("Other")
FOLDER_FILE: Final = "folder.id"
"""With several nodes, whose data folder it is; it stays the same when the folder is moved."""


@dataclass(frozen=True)
class Parts:
    """A server that has recovered and could open its port."""

    services: Services
    membership: Membership
    wishes: Wishes
    supervisor: Supervisor
    meter: Meter
    recovery: RecoveryService
    background: Background
    catalog: AgentCatalog


@contextlib.asynccontextmanager
async def open_parts(
    settings: Settings, url: str = "", port: int | None = None, machine: Awaitable[Machine] | None = None
) -> AsyncIterator[Parts]:
    """Everything but the port, which is told as `url`. The caller holds the data folder's lock.

    An agent behind our proxy may not reach that port. `machine` is what is found out of it, if somebody else
    does so.
    """
    clock = SystemClock()
    async with contextlib.AsyncExitStack() as ends:
        homes = HomeFolders(
            settings.data_dir, max_copies=settings.home_copies, max_bytes=settings.home_copy_bytes
        )
        workspaces = Workspaces(settings.data_dir, settings.workspace_roots)
        folder = keep_secret(settings.data_dir / FOLDER_FILE, new_id()) if settings.database_url else ""
        networks = Networks(settings.agent_network, settings.agent_hosts, port)
        ends.callback(networks.close)
        machine = asyncio.to_thread(find_machine, settings) if machine is None else machine
        store, (spawner, (boot, groups, _)) = await _both(
            _open_store(settings, clock, homes, folder, ends), _open_spawner(settings, machine, networks)
        )
        threads = await _open_threads(settings, ends)
        name = f"{socket.gethostname()}:{settings.port if port is None else port}"
        membership = Membership(store, clock, boot, name, folder, __version__, settings.lease_secs)
        await membership.join()
        ends.push_async_callback(membership.leave)
        background = Background()
        ends.push_async_callback(background.stop)  # the lease with it: no agent is left then
        guard = Guard(settings.data_dir, boot)
        ends.callback(guard.close)
        ownership = Ownership.find(settings.data_dir, spawner.containment, settings.agent_uids)
        made = str(settings.data_dir / "workspaces")
        spawner.note_written(await store.read_system(lambda view: view.named_folders(made)))
        ends.push_async_callback(homes.close)
        registry = _build_registry(settings, spawner, ownership, pace := Pace())
        homes.charge_to(pace.turns.charge)
        catalog = AgentCatalog(registry, spawner, os.environ)
        program = _build_program(settings, spawner, registry, ownership)
        helpers = Helpers(spawner.containment.bwrap, spawner.containment.walls, groups)
        ports = Ports(
            store=store,
            clock=clock,
            agents=registry,
            catalog=catalog,
            homes=homes if threads is None else GraphHomes(homes, threads),
            threads=threads,
            snapshots=Snapshots(settings.data_dir, helpers, turns=pace.turns),
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
            sharing=_open_sharing(settings, store, homes, workspaces),
        )
        bounds = find_bounds(settings)
        engine = build_engine(ports, bounds, membership, background)
        _keep_publishing(engine, ends)
        facts = _facts(settings, spawner.containment, groups)
        admin_token = _admin_token(settings)
        services = build_services(ports, bounds, engine, admin_token, facts)
        shared = digest_shared(settings, admin_token)
        membership.tell = partial(_tell, engine, services, shared)
        recovery = RecoveryService(store, clock, engine.supervisor, (homes, workspaces))
        wishes = Wishes(store, membership, engine.supervisor, engine.elsewhere, _errands(services, engine))
        take_over = partial(_take_over, recovery, membership, wishes)
        if membership.has_peers:
            background.keep(LEASE, partial(membership.run, engine.supervisor, take_over, guard.live_until))
        ends.push_async_callback(partial(background.stop, but=LEASE))
        await asyncio.to_thread(homes.clean_up_unfinished)
        await asyncio.to_thread(program.clean_up_unfinished)
        await recovery.notice_move(workspaces, folder)
        await _recover(settings, services, recovery)
        if membership.has_peers:
            background.keep("the wishes of other nodes", wishes.run)
        yield Parts(
            services, membership, wishes, engine.supervisor, engine.meter, recovery, background, catalog
        )


async def _both(one: Awaitable[One], other: Awaitable[Other]) -> tuple[One, Other]:
    """The results of both, side by side. Neither is left alone when the other fails."""
    found = await asyncio.gather(one, other, return_exceptions=True)
    for result in found:
        if isinstance(result, BaseException):
            raise result
    return cast(tuple[One, Other], found)


async def _open_store(
    settings: Settings, clock: Clock, homes: HomeFolders, folder: str, ends: contextlib.AsyncExitStack
) -> Store:
    remembered = len(await asyncio.to_thread(homes.names))
    if settings.database_url is None:
        packs = settings.pack_after_secs > 0
        store: Store = await open_store(settings.data_dir, clock, remembered, packs=packs)
    else:
        store = await open_database(
            settings.database_url, settings.data_dir, clock, remembered, folder, settings.lease_secs
        )
    ends.push_async_callback(store.close)
    return store


def _open_sharing(
    settings: Settings, store: Store, homes: HomeFolders, workspaces: Workspaces
) -> Sharing | None:
    if store.peers is None:
        return None
    trees = SharedTrees(settings.data_dir, homes, workspaces, settings.publish_bytes)
    return Sharing(trees, open_places(settings.blobs, store))


def _keep_publishing(engine: Engine, ends: contextlib.AsyncExitStack) -> None:
    if engine.publisher is not None:
        ends.push_async_callback(engine.publisher.finish_all)
        engine.background.keep("the publisher of files", engine.publisher.run)


async def _open_threads(settings: Settings, ends: contextlib.AsyncExitStack) -> GraphThreads | None:
    if settings.graphs_database_url is None or settings.database_url is None:
        return None
    threads = await open_graph_threads(
        settings.database_url, settings.graphs_database_url, settings.home_copies, settings.home_copy_bytes
    )
    ends.push_async_callback(threads.close)
    return threads


def _operator_servers(settings: Settings) -> OperatorServers:
    servers = {name: (one, frozenset(one.apps)) for name, one in settings.mcp_servers.items()}
    return OperatorServers(servers, os.environ)


async def _open_spawner(
    settings: Settings, machine: Awaitable[Machine], networks: Networks
) -> tuple[Spawner, Machine]:
    """What starts programs, held as well as this machine can. Those of an earlier server are ended."""
    found = await machine
    data_dir = settings.data_dir
    spawner = Spawner(found.containment, data_dir, found.boot, groups=found.groups, networks=networks)
    await spawner.end_orphans()
    return spawner, found


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
    for change in changes.values():
        if change["checkpoints"] == "database":
            change["hosts"] = (*(change["hosts"] or ()), settings.graphs_host)
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


def _tell(engine: Engine, services: Services, settings: Json) -> Telling:
    here = engine.placement
    return Telling(
        agents=engine.pool.live,
        runs=services.runs.count,
        settings=settings,
        free=here.free,
        usable=here.usable,
        cannot=here.cannot,
        answers=True,
    )


def _errands(services: Services, engine: Engine) -> dict[WishKind, Errand]:
    return {
        WishKind.REMOVE_HOME: services.sweeper.remove_here,
        WishKind.REMOVE_WORKSPACE: services.sweeper.remove_here,
        WishKind.REMOVE_UPLOAD: services.files.remove_here,
        WishKind.RECORD_FILES: engine.undone.do_here,
        WishKind.RESTORE_FILES: engine.undone.do_here,
        WishKind.ANSWER: engine.questions.hear,
        WishKind.STOP_RUNS: services.pauses.stop_runs_here,
    }


async def _take_over(recovery: RecoveryService, membership: Membership, wishes: Wishes) -> None:
    """What dead nodes left is ended and run here, as far as no other node was faster."""
    taken = await recovery.end_interrupted_turns()
    await recovery.settle_lost_runs()
    await membership.forget_dead()
    if taken:
        wishes.look_soon()
        log.warning("%d turns of nodes that are gone were ended; see `clawdforge nodes`", taken)


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
