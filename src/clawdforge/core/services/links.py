"""Share links: tokens that let anybody who has one read one session, up to a turn, and nothing else."""

from dataclasses import dataclass, replace
from typing import Final

from clawdforge.core.clock import SECOND, Clock
from clawdforge.core.ids import new_id, new_token
from clawdforge.core.models.rows import LinkRow, MessageRow, SessionRow
from clawdforge.core.pacing.long_reads import read_rows
from clawdforge.core.ports import Store, Tx, View
from clawdforge.core.rules.hidden_paths import PathHider
from clawdforge.core.rules.paging import MessageSpan, Place, read_messages
from clawdforge.core.rules.turns import need_session
from clawdforge.core.services.access import hash_token
from clawdforge.wire.errors import InvalidRequest, LimitExceeded, ShareNotFound, TurnNotFound
from clawdforge.wire.shares import CreateShare

MOST_LINKS: Final = 100
"""Of one session, without those that have expired."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What a link shows: the link, its session, and the session's title without paths."""

    link: LinkRow
    session: SessionRow
    title: str


class LinkService:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def create(self, app: str, session_id: str, request: CreateShare) -> tuple[str, LinkRow]:
        """Make a link. Its token is returned only here; a hash of it is stored."""
        token, now = new_token("cfv_"), self._clock.now()

        def work(tx: Tx) -> LinkRow:
            session = need_session(tx, session_id)
            for old in tx.links(session_id):
                if old.expires_at <= now:
                    tx.remove_link(session_id, old.share_id)
            if len(tx.links(session_id)) >= MOST_LINKS:
                raise LimitExceeded(f"a session may have {MOST_LINKS} shares; revoke one first")
            up_to, last = _find_end(tx, session, request.up_to_turn)
            row = LinkRow(
                share_id=new_id(),
                app_name=app,
                session_id=session_id,
                hash=hash_token(token),
                created_at=now,
                expires_at=now + request.expires_in_secs * SECOND,
                up_to_turn=up_to,
                last_seq=last,
            )
            tx.add_link(row)
            details = {"share_id": row.share_id, "up_to_turn": up_to, "expires_at": row.expires_at}
            tx.audit(session_id, "shared", now, details)
            return row

        return token, await self._store.write(app, work)

    async def list(self, app: str, session_id: str) -> list[LinkRow]:
        def work(view: View) -> list[LinkRow]:
            need_session(view, session_id)
            return view.links(session_id)

        now = self._clock.now()
        return [row for row in await self._store.read(app, work) if row.expires_at > now]

    async def revoke(self, app: str, session_id: str, share_id: str) -> None:
        now = self._clock.now()

        def work(tx: Tx) -> None:
            need_session(tx, session_id)
            if not tx.remove_link(session_id, share_id):
                raise ShareNotFound
            tx.audit(session_id, "share revoked", now, {"share_id": share_id})

        await self._store.write(app, work)

    async def find(self, token: str) -> Shared:
        """What a token shows now. Unknown, expired and revoked ones, and those of a session that is gone, are
        all the same."""
        presented = hash_token(token)
        link = await self._store.read_system(lambda view: view.link_by_hash(presented))
        if link is None or link.expires_at <= self._clock.now():
            raise ShareNotFound
        session = await self._store.read(link.app_name, lambda view: view.session(link.session_id))
        if session is None:
            raise ShareNotFound
        return Shared(link, session, str(PathHider(session.cwd).hide(session.title)))

    async def messages(self, shared: Shared, place: Place, limit: int) -> MessageSpan:
        """A page of what the link shows, without the workspace's path."""
        link = shared.link
        hider = PathHider(shared.session.cwd)

        def work(view: View) -> MessageSpan:
            if view.session(link.session_id) is None:
                raise ShareNotFound
            span = _read(view, link, place, limit)
            return replace(span, rows=[_hide(row, hider) for row in span.rows])

        return await read_rows(
            self._store, link.app_name, limit, work, lambda _view: shared.session.last_message
        )


def _find_end(view: View, session: SessionRow, up_to_turn: int | None) -> tuple[int, int]:
    """The last turn that is shown, and the last message that is there of it; all unless one is named."""
    if up_to_turn is None:
        return view.last_spoken_turn(session.session_id), session.last_message
    turn = view.turn(session.session_id, up_to_turn)
    if turn is None:
        raise TurnNotFound
    if turn.started_at is None or turn.cut:
        raise InvalidRequest(f"turn {up_to_turn} has not begun, or was taken back; name one that is there")
    return up_to_turn, view.last_of_fork(session.session_id, up_to_turn)


def _read(view: View, link: LinkRow, place: Place, limit: int) -> MessageSpan:
    """What was said since is not shown, but for the rest of the last turn itself, which may have run on."""
    end = max(link.last_seq, view.last_of_fork(link.session_id, link.up_to_turn) if link.up_to_turn else 0)
    if place.kind == "before":
        place = Place("before", end + 1 if place.seq is None else min(place.seq, end + 1))
    span = read_messages(view, link.session_id, place, limit, "visible")
    inside = [row for row in span.rows if row.seq <= end]
    following = span.next if span.next is not None and span.next < end else None
    shown = [row for row in inside if row.seq <= link.last_seq or row.turn == link.up_to_turn]
    return MessageSpan(shown, span.previous, following if len(inside) == len(span.rows) else None)


def _hide(row: MessageRow, hider: PathHider) -> MessageRow:
    return replace(
        row,
        content=hider.hide(row.content),
        thinking=hider.hide(row.thinking),
        tool_calls=tuple(hider.hide(row.tool_calls)),
        plan=tuple(hider.hide(row.plan)),
    )
