"""Forge route about what a turn changed in the files of its workspace."""

from typing import Annotated

from starlette.responses import Response

from clawdforge.http.errors import json_response
from clawdforge.http.requests.marks import Path, Query
from clawdforge.http.routers import Router
from clawdforge.http.routing import MAX_CURSOR, App, AppRoute, Core
from clawdforge.wire.turn_changes import ChangeBase, ChangedFile, TurnChanges, TurnDiff

Index = Annotated[int, Path(le=MAX_CURSOR)]
FileName = Annotated[str | None, Query(min_length=1, max_length=20_000)]


def routes() -> Router:
    router = Router(AppRoute, tags=["turns"])
    at = "/sessions/{session_id}/turns/{turn_index}/changes"
    router.get(at, response_model=TurnChanges | TurnDiff)(changes)
    return router


async def changes(
    core: Core,
    app: App,
    session_id: str,
    turn_index: Index,
    base: ChangeBase = ChangeBase.TURN,
    path: FileName = None,
) -> Response:
    """The files that a turn changed, with `base=first` all turns up to it; with `path`, one file's diff."""
    if path is None:
        found, listed = await core.turn_changes.list(app, session_id, turn_index, base)
        files = [
            ChangedFile(
                path=one.path,
                old_path=one.old_path,
                status=one.status,
                added=one.added,
                removed=one.removed,
                binary=one.binary,
            )
            for one in listed.files
        ]
        return json_response(
            TurnChanges(
                session_id=session_id,
                turn_index=turn_index,
                base=base,
                base_turn=found.base_turn,
                files=files,
                truncated=listed.truncated,
                reason=found.reason,
            )
        )
    found, one = await core.turn_changes.diff(app, session_id, turn_index, base, path)
    return json_response(
        TurnDiff(
            session_id=session_id,
            turn_index=turn_index,
            base=base,
            base_turn=found.base_turn,
            path=path,
            diff=one.diff,
            binary=one.binary,
            truncated=one.truncated,
            reason=found.reason,
        )
    )
