"""Packing: readers get the same events, wherever they begin, and nobody else's are touched."""

from typing import Any

from clawdforge.core.models.events import draft
from clawdforge.core.ports import Store, Tx, View
from clawdforge.wire.event import EventType
from clawdforge.wire.turn import TurnState
from tests.conformance.stores.samples import (
    APP,
    NO_LIMIT,
    OTHER,
    Reopen,
    a_message,
    a_session,
    a_turn,
    make,
    said,
)

COUNT = 1300


async def lived(store: Store) -> str:
    """A session that began with three messages and has two turns with many events."""
    sid = await make(store)

    def fill(tx: Tx) -> None:
        last = [tx.add_message(a_message(sid, f"brought {number}")) for number in range(3)][-1]
        tx.bring(sid, after=0, last=last, turns=[])
        for index in (1, 2):
            first = tx.append(sid, [draft(EventType.TURN_STARTED, index, 5)])
            tx.append(sid, [said(f"word {number}", index) for number in range(COUNT // 2 - 2)])
            last = tx.append(sid, [draft(EventType.TURN_ENDED, index, 6)])
            tx.add_turn(
                a_turn(sid, index, state=TurnState.ENDED, first_seq=first, last_seq=last, ended_at=index)
            )

    await store.write(APP, fill)
    return sid


def pages_of(view: View, session_id: str) -> list[Any]:
    pages = [
        view.events(session_id, after=after, limit=limit, max_bytes=size)
        for after in (0, 1, 300, 511, 512, 513, 800, COUNT - 1, COUNT)
        for limit, size in ((1, 1), (700, NO_LIMIT), (10**6, 3000), (10**6, NO_LIMIT))
    ]
    turns = [view.turn_events(session_id, n, after=0, limit=10**6, max_bytes=NO_LIMIT) for n in (1, 2)]
    return [*pages, *turns, view.count_brought(session_id)]


async def pack_all(store: Store, session_id: str, through: int = COUNT) -> int:
    count = 0
    while await store.pack(APP, session_id, through):
        count += 1
    return count


async def test_packing_changes_nothing_for_readers(store: Store, reopen: Reopen) -> None:
    sid = await lived(store)
    before = await store.read(APP, lambda view: pages_of(view, sid))
    for through in (0, 100, 101, 700, COUNT):
        await pack_all(store, sid, through)
        assert await store.read(APP, lambda view: pages_of(view, sid)) == before
    again = await reopen()
    assert await again.read(APP, lambda view: pages_of(view, sid)) == before
    assert not await again.pack(APP, sid, COUNT)


async def test_a_packed_session_goes_on(store: Store) -> None:
    sid = await lived(store)
    await pack_all(store, sid)
    assert await store.write(APP, lambda tx: tx.append(sid, [said("more")])) == COUNT + 1
    events = await store.read(APP, lambda v: v.events(sid, after=COUNT - 1, limit=9, max_bytes=NO_LIMIT))
    assert [event.seq for event in events] == [COUNT, COUNT + 1]
    assert await pack_all(store, sid, COUNT + 1) == 1
    assert (
        await store.read(APP, lambda v: v.events(sid, after=COUNT - 1, limit=9, max_bytes=NO_LIMIT)) == events
    )
    await store.write(APP, lambda tx: tx.bring(sid, after=0, last=1, turns=[]))
    assert await store.read(APP, lambda v: v.count_brought(sid)) == 4


async def test_only_its_own_app_packs_a_session(store: Store) -> None:
    sid = await lived(store)
    own = await make(store, a_session(app_name=OTHER))
    assert not await store.pack(OTHER, sid, COUNT)
    assert not await store.pack(OTHER, own, COUNT)
    assert not await store.pack(APP, "unknown", COUNT)
    assert await store.read_system(lambda v: v.unpacked_sessions("", 9)) == (
        [(APP, sid)],
        max(sid, own),
    )
    await pack_all(store, sid)
    assert (await store.read(OTHER, lambda v: pages_of(v, sid)))[:9] == [[]] * 9
    assert await store.read_system(lambda v: v.unpacked_sessions("", 9)) == ([], max(sid, own))
    assert await store.read_system(lambda v: v.unpacked_sessions(max(sid, own), 9)) == ([], None)


async def test_packs_are_purged_with_their_session(store: Store) -> None:
    sid = await lived(store)
    await pack_all(store, sid)
    await store.write(APP, lambda tx: tx.change_session(sid, deleted_at=1))
    assert not await store.pack(APP, sid, COUNT)
    steps = 1
    while not await store.write(APP, lambda tx: tx.purge(sid, 2)):
        steps += 1
    assert steps > COUNT // 512
    assert await store.read_system(lambda v: v.unknown_sessions([sid])) == [sid]
    await make(store, a_session(session_id=sid))
    assert await store.read(APP, lambda v: v.events(sid, after=0, limit=9, max_bytes=1)) == []
