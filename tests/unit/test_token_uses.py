"""Tokens in the store: what old ones may do, and how seldom a use is written."""

import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import apsw
import pytest

from clawdforge.core.clock import SECOND, SystemClock
from clawdforge.core.models.rows import TokenRow
from clawdforge.core.ports import SystemTx
from clawdforge.core.services.token_uses import COARSE, TokenUses
from clawdforge.http.routing import AdminRoute, AppRoute
from clawdforge.http.scopes import find_scope
from clawdforge.stores import open_store
from clawdforge.stores.sqlite.migrations import list_migrations, migrate
from clawdforge.wire.scopes import Scope


@dataclass
class HandClock(SystemClock):
    at: int = 1_000 * COARSE

    def now(self) -> int:
        return self.at


def test_a_token_from_before_there_were_scopes_may_do_everything(tmp_path: Path) -> None:
    older = tmp_path / "older"
    older.mkdir()
    for number, path in list_migrations():
        if number < 5:
            shutil.copy(path, older)
    connection = apsw.Connection(str(tmp_path / "forge.db"))
    migrate(connection, SystemClock(), older)
    connection.execute(
        "INSERT INTO tokens (token_id, app_name, hash, created_at) VALUES ('t', 'a', x'00', 1)"
    )
    migrate(connection, SystemClock())
    (found,) = connection.execute("SELECT scopes, last_used_at FROM tokens").fetchall()
    assert found == ('["read","prompt","decide","admin"]', None)
    assert [scope.value for scope in Scope] == ["read", "prompt", "decide", "admin"]


async def test_a_use_is_noted_once_a_minute_and_written_for_all_at_once(tmp_path: Path) -> None:
    clock = HandClock()
    store = await open_store(tmp_path / "data", clock)
    rows = [TokenRow(name, "app", name.encode(), 1, scopes=("read",)) for name in ("one", "two")]
    for row in rows:
        await store.write_system(partial(_add, row))
    uses = TokenUses(store, clock)

    async def kept() -> list[int | None]:
        found = await store.read_system(lambda view: view.tokens("app"))
        return [row.last_used_at for row in found]

    def commits() -> int:
        return int(store.commit_times.samples()[-1].value)

    before = commits()
    await uses.write()
    assert commits() == before, "nothing was used"
    first = clock.at
    for row in rows:
        uses.note(row)
    clock.at += COARSE - SECOND
    uses.note(rows[0])
    assert [uses.last_use(row) for row in rows] == [first, first]
    assert await kept() == [None, None], "a use writes nothing by itself"
    await uses.write()
    assert await kept() == [first, first]
    assert commits() == before + 1
    rows = await store.read_system(lambda view: view.tokens("app"))
    clock.at += SECOND
    uses.note(rows[0])
    await uses.write()
    assert await kept() == [clock.at, first]
    await store.close()


def _add(row: TokenRow, tx: SystemTx) -> None:
    tx.add_token(row)


def test_a_route_without_a_scope_cannot_be_served() -> None:
    async def nothing() -> None: ...

    with pytest.raises(ValueError, match="POST /new has no scope"):
        find_scope(AppRoute("POST", "/new", nothing), "POST", "")
    assert find_scope(AppRoute("GET", "/x/api/session", nothing), "GET", "/x") is Scope.READ
    assert find_scope(AdminRoute("GET", "/admin/new", nothing), "GET", "") is None
