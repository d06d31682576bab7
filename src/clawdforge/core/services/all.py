"""All services of one server, as the surfaces get them."""

from dataclasses import dataclass

from clawdforge.core.log import LogService
from clawdforge.core.ports import Catalog
from clawdforge.core.running.permissions import PermissionService
from clawdforge.core.services.access import AccessService
from clawdforge.core.services.apps import AppService
from clawdforge.core.services.audit import AuditService
from clawdforge.core.services.compaction import CompactionService
from clawdforge.core.services.files import FileService
from clawdforge.core.services.forks import ForkService
from clawdforge.core.services.health import HealthService
from clawdforge.core.services.history import HistoryService
from clawdforge.core.services.messages import MessageService
from clawdforge.core.services.metrics import MetricsService
from clawdforge.core.services.personas import PersonaService
from clawdforge.core.services.runs import RunService
from clawdforge.core.services.sessions import SessionService
from clawdforge.core.services.sweeper import Sweeper
from clawdforge.core.services.transfer import TransferService
from clawdforge.core.services.turns import TurnService


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
