"""How a refusal of the server reads in the editor: its words, and the number that clients know."""

from typing import Final

from clawdforge.client.errors import (
    ForgeAPIError,
    ForgeError,
    InvalidRequest,
    SessionNotFound,
    Unauthenticated,
    UnknownAgent,
    WorkspaceRefused,
)
from clawdforge.jsonrpc.rpc import INTERNAL_ERROR, INVALID_PARAMS, RpcError

AUTH_REQUIRED: Final = -32000
NOT_FOUND: Final = -32002

CODES: Final[tuple[tuple[type[ForgeError], int], ...]] = (
    (SessionNotFound, NOT_FOUND),
    (Unauthenticated, AUTH_REQUIRED),
    (WorkspaceRefused, INVALID_PARAMS),
    (UnknownAgent, INVALID_PARAMS),
    (InvalidRequest, INVALID_PARAMS),
)


def to_rpc(error: ForgeError) -> RpcError:
    """What the editor is answered. A session of another app is as unknown as one that never was."""
    number = next((code for kind, code in CODES if isinstance(error, kind)), INTERNAL_ERROR)
    if isinstance(error, ForgeAPIError):
        return RpcError(number, error.message, {"code": error.code} if error.code else None)
    return RpcError(number, str(error))
