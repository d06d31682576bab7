"""All services of one server, as the surfaces get them, and how they are built from the ports."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from clawdforge.core.callbacks import CallbackTokens
from clawdforge.core.clock import Clock
from clawdforge.core.log import LogService
from clawdforge.core.models.mcp import OperatorServers
from clawdforge.core.models.rows import SessionRow
from clawdforge.core.pacing.computing import Computing
from clawdforge.core.pacing.loop_turns import LoopTurns
from clawdforge.core.pacing.pace import Pace
from clawdforge.core.pacing.watchdog import Watchdog
from clawdforge.core.ports import Agents, Catalog, FolderSizes, Homes, Snapshots, Store, Workspaces
from clawdforge.core.ports.shared_files import Sharing
from clawdforge.core.ports.telemetry import Telemetry
from clawdforge.core.ports.threads import GraphThreads
from clawdforge.core.ports.trees import Trees
from clawdforge.core.ports.uploads import Uploads
from clawdforge.core.ports.webhooks import Receivers
from clawdforge.core.rules.quotas import NO_QUOTAS, Quotas
from clawdforge.core.rules.retention import Ages
from clawdforge.core.running.answers import Answers
from clawdforge.core.running.arrivals import Arrivals
from clawdforge.core.running.attendant import Attendant, Times
from clawdforge.core.running.background import Background
from clawdforge.core.running.boundary import Boundary
from clawdforge.core.running.carried_uploads import CarriedUploads
from clawdforge.core.running.elsewhere import Elsewhere
from clawdforge.core.running.folder_holds import FolderHolds
from clawdforge.core.running.known_workspaces import KnownWorkspaces
from clawdforge.core.running.membership import Membership
from clawdforge.core.running.meter import Meter
from clawdforge.core.running.opening import Opener
from clawdforge.core.running.permissions import PermissionService
from clawdforge.core.running.piece_box import PieceBox
from clawdforge.core.running.placement import Placement
from clawdforge.core.running.pool import AgentPool
from clawdforge.core.running.publisher import Publisher
from clawdforge.core.running.questions import Questions
from clawdforge.core.running.spares import Spares
from clawdforge.core.running.supervisor import Supervisor
from clawdforge.core.running.undone_files import UndoneFiles
from clawdforge.core.services.access import LOCAL_APP, AccessService
from clawdforge.core.services.agent_list import AgentList
from clawdforge.core.services.apps import AppService
from clawdforge.core.services.audit import AuditService
from clawdforge.core.services.budgets import BudgetService
from clawdforge.core.services.changes import ChangeService
from clawdforge.core.services.compaction import CompactionService
from clawdforge.core.services.courier import Courier
from clawdforge.core.services.disk import DiskService
from clawdforge.core.services.files import FileService
from clawdforge.core.services.finishing import Finisher
from clawdforge.core.services.forks import ForkService
from clawdforge.core.services.health import HealthService
from clawdforge.core.services.history import HistoryService
from clawdforge.core.services.links import LinkService
from clawdforge.core.services.logins import LoginService
from clawdforge.core.services.messages import MessageService
from clawdforge.core.services.metrics import MetricsService
from clawdforge.core.services.nodes import NodeService
from clawdforge.core.services.occurrences import Occurrences
from clawdforge.core.services.packing import Packer
from clawdforge.core.services.pauses import PauseService
from clawdforge.core.services.personas import PersonaService
from clawdforge.core.services.runs import OneShot, RunService
from clawdforge.core.services.schedules import ScheduleService
from clawdforge.core.services.sessions import SessionService
from clawdforge.core.services.shares import Share, ShareService
from clawdforge.core.services.sub_sessions import SubSessionService
from clawdforge.core.services.sweeper import Sweeper
from clawdforge.core.services.telemetry import TelemetryService
from clawdforge.core.services.timekeeper import Timekeeper
from clawdforge.core.services.transfer import TransferService
from clawdforge.core.services.turn_changes import TurnChangeService
from clawdforge.core.services.turns import TurnService
from clawdforge.core.services.usage import UsageService
from clawdforge.core.services.webhooks import WebhookService


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The world as the product is given it."""

    store: Store
    clock: Clock
    agents: Agents
    catalog: Catalog
    homes: Homes
    snapshots: Snapshots
    trees: Trees
    workspaces: Workspaces
    sizes: FolderSizes
    uploads: Uploads
    program: OneShot
    callbacks: CallbackTokens
    pace: Pace = field(default_factory=Pace)
    mcp: OperatorServers = field(default_factory=OperatorServers)
    receivers: Receivers | None = None  # of webhooks; None while they are off
    telemetry: Telemetry | None = None  # likewise
    has_schedules: bool = True
    sharing: Sharing | None = None  # files that travel between nodes; None where there can be no others
    threads: GraphThreads | None = None  # of graphs that keep their checkpoints in a database


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much there may be of everything, and how long it may take."""

    live_agents: int
    file_bytes: int
    agent_idle_secs: float
    spare_agents: int = 0
    permission_secs: float
    times: Times
    ages: Ages
    share: Share = field(default_factory=Share)
    quotas: Quotas = NO_QUOTAS


@dataclass(frozen=True, slots=True)
class Engine:
    """What runs turns."""

    pool: AgentPool
    spares: Spares
    permissions: PermissionService
    answers: Answers
    known: KnownWorkspaces
    folders: FolderHolds
    meter: Meter
    membership: Membership
    elsewhere: Elsewhere
    placement: Placement
    supervisor: Supervisor
    background: Background
    uploads: CarriedUploads
    box: PieceBox | None
    publisher: Publisher | None
    questions: Questions
    undone: UndoneFiles


@dataclass(frozen=True, slots=True)
class Services:
    access: AccessService
    logins: LoginService
    sub_sessions: SubSessionService
    sessions: SessionService
    turns: TurnService
    history: HistoryService
    compaction: CompactionService
    forks: ForkService
    transfer: TransferService
    log: LogService
    changes: ChangeService
    messages: MessageService
    links: LinkService
    webhooks: WebhookService
    courier: Courier
    schedules: ScheduleService
    timekeeper: Timekeeper
    permissions: PermissionService
    health: HealthService
    nodes: NodeService
    apps: AppService
    shares: ShareService
    audit: AuditService
    metrics: MetricsService
    telemetry: TelemetryService
    sweeper: Sweeper
    finisher: Finisher
    packer: Packer
    watchdog: Watchdog
    files: FileService
    runs: RunService
    personas: PersonaService
    pauses: PauseService
    budgets: BudgetService
    disk: DiskService
    usage: UsageService
    turn_changes: TurnChangeService
    agents: Catalog
    ages: Ages
    loop_turns: LoopTurns
    computing: Computing


def build_engine(ports: Ports, bounds: Bounds, membership: Membership, background: Background) -> Engine:
    store, clock, homes, snapshots = ports.store, ports.clock, ports.homes, ports.snapshots
    pool = AgentPool(bounds.live_agents, bounds.agent_idle_secs)
    permissions = PermissionService(store, clock, bounds.permission_secs)
    answers = Answers()
    boundary = Boundary(answers, homes, snapshots, ports.pace.turns)
    known = KnownWorkspaces(store, ports.workspaces, lambda: membership.folder, LOCAL_APP)
    placement = Placement(membership, ports.agents, known, pool)

    def hold_others(session: SessionRow) -> AbstractAsyncContextManager[None]:
        return folders.hold(session, but_own=True)  # made below: it holds what the opener is a part of

    spares = Spares(
        store,
        clock,
        ports.agents,
        homes,
        snapshots,
        ports.workspaces,
        pool,
        ports.mcp,
        bounds.spare_agents,
        bounds.agent_idle_secs,
    )
    sharing = ports.sharing
    box = None if sharing is None else PieceBox(store, clock, sharing.places)
    uploads = CarriedUploads(ports.uploads, box)
    arrivals, publisher = None, None
    if sharing is not None and box is not None:
        arrivals = Arrivals(store, membership, sharing.files, box)
        publisher = Publisher(store, clock, membership, sharing.files, box)
    told = (ports.callbacks, ports.mcp, uploads, arrivals, ports.threads)
    opener = Opener(store, clock, ports.agents, homes, snapshots, known, hold_others, pool, *told)
    is_traced = ports.telemetry is not None
    elsewhere = Elsewhere(store, clock, membership, publisher, placement)
    attendant = Attendant(
        store,
        clock,
        opener,
        pool,
        permissions,
        elsewhere,
        ports.pace.turns,
        bounds.times,
        bounds.quotas,
        is_traced=is_traced,
    )
    meter = Meter(store, ports.sizes)

    def note_files(app: str, session_id: str) -> None:
        meter.look(app, session_id)
        if publisher is not None:
            publisher.note(app, session_id)

    supervisor = Supervisor(store, clock, pool, attendant, boundary, elsewhere, note_files, bounds.quotas)
    folders = FolderHolds(store, supervisor)
    questions = Questions(store, clock, membership)
    undone = UndoneFiles(store, snapshots, known, questions, lambda: membership.folder, supervisor.measure)
    return Engine(
        pool,
        spares,
        permissions,
        answers,
        known,
        folders,
        meter,
        membership,
        elsewhere,
        placement,
        supervisor,
        background,
        uploads,
        box,
        publisher,
        questions,
        undone,
    )


def build_services(
    ports: Ports, bounds: Bounds, engine: Engine, admin_token: str, facts: dict[str, object]
) -> Services:
    """`facts` are what the health check tells of this machine."""
    store, clock, agents, supervisor = ports.store, ports.clock, ports.agents, engine.supervisor
    homes, snapshots, workspaces = ports.homes, ports.snapshots, ports.workspaces
    turns_on_loop, computing = ports.pace.turns, ports.pace.computing
    store.charge_to(turns_on_loop.charge)
    log = LogService(store, turns_on_loop, computing)
    changes = ChangeService(store, turns_on_loop)
    files = FileService(
        store,
        clock,
        ports.uploads,
        engine.uploads,
        bounds.file_bytes,
        bounds.quotas,
        engine.elsewhere,
    )
    known, folders = engine.known, engine.folders
    sessions = SessionService(
        store,
        clock,
        agents,
        workspaces,
        log,
        supervisor,
        folders,
        engine.spares,
        bounds.quotas,
        engine.elsewhere,
    )
    shares = ShareService(store, clock, bounds.share, bounds.quotas, engine.pool.held)
    access = AccessService(store, clock, admin_token, ports.callbacks)
    finisher, watchdog = Finisher(store, engine.elsewhere), Watchdog()
    courier = Courier(store, clock, ports.receivers, is_traced=ports.telemetry is not None)
    delays, telemetry = watchdog.delays, ports.telemetry
    turns = TurnService(
        store, clock, log, supervisor, engine.answers, bounds.quotas, computing, engine.elsewhere
    )
    occurrences = Occurrences(store, clock, sessions, turns)
    timekeeper = Timekeeper(store, clock, occurrences, computing, is_on=ports.has_schedules)
    metrics = MetricsService(
        store,
        log,
        changes,
        engine.pool,
        supervisor,
        engine.background,
        delays,
        courier,
        timekeeper,
        telemetry,
    )
    runs = RunService(
        store,
        clock,
        ports.program,
        engine.membership,
        max_runs=bounds.live_agents,
        timeout_secs=bounds.times.turn,
        quotas=bounds.quotas,
    )
    return Services(
        access=access,
        logins=LoginService(store, clock, access, admin_token),
        sub_sessions=SubSessionService(store, sessions),
        sessions=sessions,
        turns=turns,
        history=HistoryService(store, clock, supervisor, engine.undone, folders, finisher, bounds.quotas),
        finisher=finisher,
        packer=Packer(store, clock, bounds.ages.event),
        compaction=CompactionService(store, clock, supervisor, turns),
        forks=ForkService(store, clock, supervisor, homes, snapshots, known, folders, bounds.quotas),
        transfer=TransferService(store, sessions, turns_on_loop, computing, bounds.quotas),
        log=log,
        changes=changes,
        messages=MessageService(store, clock, log, turns_on_loop, bounds.quotas),
        links=LinkService(store, clock),
        webhooks=WebhookService(store, clock, ports.receivers, courier.wake),
        courier=courier,
        schedules=ScheduleService(
            store, clock, sessions, occurrences, bounds.quotas, timekeeper.wake, is_on=ports.has_schedules
        ),
        timekeeper=timekeeper,
        loop_turns=turns_on_loop,
        computing=computing,
        permissions=engine.permissions,
        health=HealthService(
            store, engine.pool, supervisor, engine.background, engine.membership, facts, clock
        ),
        nodes=NodeService(store, clock, engine.membership),
        apps=AppService(store, clock, workspaces, shares, supervisor),
        shares=shares,
        audit=AuditService(store),
        metrics=metrics,
        telemetry=TelemetryService(store, telemetry, metrics, turns_on_loop),
        watchdog=watchdog,
        sweeper=Sweeper(
            store,
            clock,
            supervisor,
            engine.elsewhere,
            log,
            homes,
            workspaces,
            files,
            bounds.ages,
            engine.box,
        ),
        files=files,
        runs=runs,
        personas=PersonaService(store, clock, agents, engine.elsewhere),
        pauses=PauseService(store, clock, agents, supervisor, engine.elsewhere, runs),
        budgets=BudgetService(store, clock),
        disk=DiskService(store, bounds.quotas),
        usage=UsageService(store, clock),
        turn_changes=TurnChangeService(store, supervisor, ports.trees),
        agents=AgentList(ports.catalog, engine.elsewhere),
        ages=bounds.ages,
    )
