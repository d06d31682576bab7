"""The rule that decides how much an app may store: at its limit, one below, one above, and in which words."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.rows import AppRow
from clawdforge.core.rules.admission import PLENTY, Room, estimate_room
from clawdforge.core.rules.quotas import NO_QUOTAS, Quotas, describe_lack, say_bytes
from clawdforge.stores import open_store
from clawdforge.stores.sqlite.store import SqliteStore
from clawdforge.wire.disk import DiskForm
from clawdforge.wire.errors import LimitExceeded, PoolFull
from clawdforge.wire.session import Activity, Retention
from tests.conformance.stores.samples import APP, OTHER, a_file, a_session, a_turn, make

SET = Quotas(bytes=100, agents=3, exempt=OTHER)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    found = await open_store(tmp_path / "data", SystemClock())
    yield found
    await found.close()


async def fill(store: SqliteStore, size: int) -> None:
    await store.write(APP, lambda tx: tx.add_file(a_file("ff-1", size=size)))


@pytest.mark.parametrize(("stored", "size", "fits"), [(99, 1, True), (100, 1, False), (99, 2, False)])
async def test_what_fits_exactly_fits(store: SqliteStore, *, stored: int, size: int, fits: bool) -> None:
    await fill(store, stored)
    if fits:
        await store.read(APP, lambda view: SET.check_room(view, size))
    else:
        with pytest.raises(LimitExceeded):
            await store.read(APP, lambda view: SET.check_room(view, size))


async def test_nothing_more_to_store_is_refused_only_beyond_the_limit(store: SqliteStore) -> None:
    await fill(store, 100)
    await store.read(APP, lambda view: SET.check_room(view, 0))
    await store.write(APP, lambda tx: tx.add_file(a_file("ff-2", size=1)))
    with pytest.raises(LimitExceeded):
        await store.read(APP, lambda view: SET.check_room(view, 0))


async def test_what_the_operator_sets_counts_before_the_settings(store: SqliteStore) -> None:
    assert await store.read(APP, SET.max_bytes) == 100
    assert await store.read(APP, SET.max_agents) == 3
    await store.write_system(lambda tx: tx.put_app(AppRow(APP, 1, max_bytes=0, max_agents=0)))
    assert await store.read(APP, SET.max_bytes) == 0
    assert await store.read(APP, SET.max_agents) == 0
    await store.write_system(lambda tx: tx.put_app(AppRow(APP, 1, max_bytes=500)))
    assert await store.read(APP, SET.room) == 500
    assert await store.read(APP, SET.max_agents) == 3


async def test_the_operators_own_app_has_only_what_it_is_given(store: SqliteStore) -> None:
    assert await store.read(OTHER, SET.room) is None
    assert await store.read(OTHER, SET.max_agents) is None
    await store.write_system(lambda tx: tx.put_app(AppRow(OTHER, 1, max_bytes=7, max_agents=1)))
    assert await store.read(OTHER, SET.room) == 7
    assert await store.read(OTHER, SET.max_agents) == 1


async def test_without_settings_there_is_no_limit(store: SqliteStore) -> None:
    await fill(store, 1 << 50)
    assert await store.read(APP, NO_QUOTAS.room) is None
    await store.read(APP, NO_QUOTAS.check_room)


@pytest.mark.parametrize(
    ("form", "command"),
    [
        (DiskForm.UPLOADS, "/files/FILE_TOKEN"),
        (DiskForm.RUNS, "clawdforge archive runs FILE --before DATE"),
        (DiskForm.EVENTS, "clawdforge sessions delete ID"),
        (DiskForm.HOME_COPIES, "clawdforge sessions delete ID"),
    ],
)
def test_a_refusal_names_the_largest_form_and_a_command(form: DiskForm, command: str) -> None:
    text = describe_lack({DiskForm.MESSAGES: 10, form: 3 << 20}, -5)
    assert f"most of it {form.replace('_', ' ')} (3 MiB)" in text
    assert command in text


def test_a_limit_of_nothing_is_said_as_well() -> None:
    assert "may store 0 bytes and stores 0 bytes, nothing yet" in describe_lack(dict.fromkeys(DiskForm, 0), 0)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1024, "1 KiB"),
        (1_600_000, "1.53 MiB"),
        (20 << 30, "20 GiB"),
        (1 << 53, "8192 TiB"),
    ],
)
def test_sizes_are_said_in_words(count: int, text: str) -> None:
    assert say_bytes(count) == text


async def may_open(
    store: SqliteStore, quotas: Quotas, app: str = APP, retention: Retention = Retention.TTL
) -> str:
    """Nothing, or why there may not be one more session."""
    try:
        await store.read(app, lambda view: quotas.check_sessions(view, retention))
    except (LimitExceeded, PoolFull) as refused:
        return refused.message
    return ""


async def test_a_share_of_sessions_counts_those_that_are_ttl(store: SqliteStore) -> None:
    quotas = Quotas(sessions=2, live_sessions=100, exempt=OTHER)
    for _ in range(5):
        await make(store, a_session(retention=Retention.KEEP))
        await make(store, a_session(app_name=OTHER))
    await make(store)
    assert not await may_open(store, quotas), "one below"
    await make(store)
    words = "this app may have 2 open `ttl` sessions; close one"
    assert await may_open(store, quotas) == words
    assert not await may_open(store, quotas, retention=Retention.KEEP), "what is kept is never refused"
    assert not await may_open(store, quotas, OTHER)
    await make(store)
    assert await may_open(store, quotas) == words, "one above, of a share that was larger before"
    await store.write_system(lambda tx: tx.put_app(AppRow(APP, 1, max_sessions=9)))
    assert not await may_open(store, quotas), "the operator's limit instead"
    await make(store, a_session(retention=Retention.KEEP))
    assert "9 open sessions" in await may_open(store, quotas, retention=Retention.KEEP)


@pytest.mark.parametrize(("size", "for_one"), [(1, 1), (2, 2), (49, 49), (50, 40)])
async def test_a_fifth_of_the_sessions_is_kept_for_apps_that_have_none(
    store: SqliteStore, size: int, for_one: int
) -> None:
    quotas = Quotas(sessions=500, live_sessions=size)
    for number in range(for_one):
        assert not await may_open(store, quotas), number
        await make(store)
    refused = await may_open(store, quotas)
    if for_one == size:
        assert refused == PoolFull().message, "a small pool is one app's, and says what it always said"
    else:
        assert f"the last {size - for_one} places" in refused
        assert not await may_open(store, quotas, OTHER)
        for number in range(size - for_one):
            await make(store, a_session(app_name=f"app-{number}"))
    assert await may_open(store, quotas, OTHER) == PoolFull().message


async def test_a_share_of_turns_counts_those_that_have_not_ended(store: SqliteStore) -> None:
    quotas, sid = Quotas(turns=2, exempt=OTHER), await make(store)
    for number in (1, 2):
        await store.read(APP, quotas.check_turns)
        await store.write(APP, lambda tx, n=number: tx.add_turn(a_turn(sid, n)))  # type: ignore[misc]
        await store.write(APP, lambda tx: tx.change_session(sid, activity=Activity.QUEUED))
    with pytest.raises(LimitExceeded, match="2 turns in flight"):
        await store.read(APP, quotas.check_turns)
    await store.read(OTHER, quotas.check_turns)
    await store.write_system(lambda tx: tx.put_app(AppRow(APP, 1, max_turns_in_flight=3)))
    await store.read(APP, quotas.check_turns)


def test_what_is_left_is_looked_up_where_the_prompt_itself_might_matter() -> None:
    assert estimate_room(None, "x" * 1000) == Room(None)
    assert estimate_room(PLENTY + 10, "x") == Room(PLENTY)
    assert estimate_room(PLENTY + 9, "x") is None
