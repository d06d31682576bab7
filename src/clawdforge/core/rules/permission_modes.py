"""Which permission mode a new session gets: only who may decide may have anything approved in advance."""

from typing import Final

from clawdforge.wire.errors import Forbidden
from clawdforge.wire.scopes import Scope
from clawdforge.wire.session import PermissionMode

APPROVING: Final = frozenset({PermissionMode.APPROVE_ALL, PermissionMode.APPROVE_READS})


def choose_mode(
    wanted: PermissionMode | None, personas: PermissionMode | None, *, may_decide: bool
) -> PermissionMode:
    """What the caller wants, else what its persona says. Forbidden where only others may approve that."""
    if not may_decide and wanted in APPROVING and wanted != personas:
        raise Forbidden(
            f"permission_mode {wanted} needs a token with the scope {Scope.DECIDE}; leave it out, or say"
            f" {PermissionMode.ASK}"
        )
    return wanted or personas or (PermissionMode.APPROVE_ALL if may_decide else PermissionMode.ASK)


def keep_mode(found: PermissionMode, *, may_decide: bool) -> PermissionMode:
    """The mode of an imported session. Whoever may not decide gets one that asks."""
    return found if may_decide or found not in APPROVING else PermissionMode.ASK
