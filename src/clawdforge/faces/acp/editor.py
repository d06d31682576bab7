"""The other end of the connection: what an editor is shown, and what its user is asked."""

from collections.abc import Iterable, Sequence

from clawdforge.jsonrpc.rpc import Connection
from clawdforge.wire.base import Json


class Editor:
    """Every call raises Disconnected when the editor is gone."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def show(self, session_id: str, update: Json) -> None:
        await self._connection.notify("session/update", {"sessionId": session_id, "update": update})

    async def show_all(self, session_id: str, updates: Iterable[Json]) -> None:
        await self._connection.notify_all(
            "session/update", ({"sessionId": session_id, "update": update} for update in updates)
        )

    async def ask(self, session_id: str, call: Json, options: Sequence[Json]) -> str | None:
        """The option that the user chose; None if the editor would not decide.

        Whoever is cancelled while waiting withdraws the question. RpcError if the editor cannot ask.
        """
        params = {"sessionId": session_id, "toolCall": call, "options": list(options)}
        answer = await self._connection.request("session/request_permission", params, withdraws=True)
        outcome = answer.get("outcome")
        chosen = outcome.get("optionId") if isinstance(outcome, dict) else None
        return chosen if isinstance(chosen, str) else None
