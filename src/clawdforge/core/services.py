"""All services of one server, as the surfaces get them."""

from dataclasses import dataclass

from clawdforge.core.access import AccessService
from clawdforge.core.apps import AppService
from clawdforge.core.compaction import CompactionService
from clawdforge.core.files import FileService
from clawdforge.core.forks import ForkService
from clawdforge.core.health import HealthService
from clawdforge.core.history import HistoryService
from clawdforge.core.ledger import AuditService
from clawdforge.core.log import LogService
from clawdforge.core.messages import MessageService
from clawdforge.core.metrics import MetricsService
from clawdforge.core.permissions import PermissionService
from clawdforge.core.personas import PersonaService
from clawdforge.core.ports import Catalog
from clawdforge.core.runs import RunService
from clawdforge.core.sessions import SessionService
from clawdforge.core.sweeper import Sweeper
from clawdforge.core.transfer import TransferService
from clawdforge.core.turns import TurnService


@dataclass(frozen=True, slots=True)
class Services:
    access: AccessService
    sessions: SessionService
    turns: TurnService
    history: HistoryService
    compaction: CompactionService
    forks: ForkService
    transfer: TransferService
    log: LogService
    messages: MessageService
    permissions: PermissionService
    health: HealthService
    apps: AppService
    audit: AuditService
    metrics: MetricsService
    sweeper: Sweeper
    files: FileService
    runs: RunService
    personas: PersonaService
    agents: Catalog
