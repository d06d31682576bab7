"""The finisher of long changes: who keeps it away from a session, and what a damaged session costs others."""

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import pytest

from clawdforge.core.ports import Tx, View
from clawdforge.core.rules.turns import need_session
from clawdforge.core.services.access import LOCAL_APP
from clawdforge.parts import Parts, open_parts
from clawdforge.settings import Settings
from clawdforge.stores.sqlite import sets, view
from clawdforge.wire.errors import SessionBusy
from clawdforge.wire.session import ImportRequest, RedoRequest, UndoRequest

APP = LOCAL_APP
LENGTH = 40


@pytest.fixture
async def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Parts]:
    """A server without its port, for which every history is a long one."""
    for module in (sets, view):
        monkeypatch.setattr(module, "SLICE_ROWS", 4)
    settings = Settings.model_validate({"data_dir": tmp_path / "data", "sandbox": "off"})
    async with asyncio.timeout(60), open_parts(settings) as opened:
        yield opened
        await opened.supervisor.stop(0)


async def long_session(parts: Parts, app: str = APP) -> str:
    said: list[Any] = [
        {"role": "assistant" if number % 2 else "user", "content": f"needle {number}"}
        for number in range(LENGTH)
    ]
    state = await parts.services.transfer.import_session(app, ImportRequest(messages=said))
    return state.row.session_id


async def test_a_second_redo_does_not_let_the_settler_in_on_the_first(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for the first, gives up, and what the first has restored so far stays restored."""
    history, store, supervisor = parts.services.history, parts.services.history._store, parts.supervisor
    finisher = history._finisher
    session_id = await long_session(parts)
    await history.undo(APP, session_id, UndoRequest(turns=LENGTH))
    await finisher.finish_all()
    write, slices = store.write_slice, 0

    async def write_and_be_disturbed(app: str, work: Callable[[Tx], Any]) -> Any:
        nonlocal slices
        result = await write(app, work)
        slices += "_prepare_redo" in work.__qualname__
        if slices == 3:
            slices += 1
            with pytest.raises(SessionBusy):
                await history.redo(APP, session_id, RedoRequest())
            await finisher.finish_all()
        return result

    monkeypatch.setattr(supervisor, "hold", partial(supervisor.hold, within=0.01))
    monkeypatch.setattr(store, "write_slice", write_and_be_disturbed)
    restored = await history.redo(APP, session_id, RedoRequest())
    assert slices > 3
    await finisher.finish_all()

    def count(found: View) -> tuple[int, int]:
        return need_session(found, session_id).message_count, len(found.messages(session_id, limit=1000))

    assert len(restored.messages) == LENGTH
    assert await store.read(APP, count) == (LENGTH, LENGTH)


@pytest.mark.parametrize("what", ["finish_change", "refresh_index"])
async def test_what_is_damaged_keeps_nothing_else_from_being_finished(
    parts: Parts, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    """A damaged session leaves the others alone, and the damaged index of an app those of other apps."""
    history, store = parts.services.history, parts.services.history._store
    apps = ("alpha", "beta")
    sound, damaged = getattr(sets.HistorySets, what), False

    def meet_damage(found: sets.HistorySets, *args: str) -> bool:
        if damaged and found.app == apps[0]:
            raise apsw.CorruptError("a page is not what it was")
        return bool(sound(found, *args))

    monkeypatch.setattr(sets.HistorySets, what, meet_damage)
    made = [(app, await long_session(parts, app)) for app in apps]
    await history._finisher.finish_all()
    damaged = True
    for app, session_id in made:
        await history.undo(app, session_id, UndoRequest(turns=LENGTH))
    await history._finisher.finish_all()
    left = await store.read_system(lambda found: found.unfinished_sessions(10))
    unindexed = await store.read_system(lambda found: found.unindexed_apps())
    assert [app for app, _ in left] == (["alpha"] if what == "finish_change" else [])
    assert unindexed == ([] if what == "finish_change" else ["alpha"])
    assert "damaged; see `clawdforge doctor`" in caplog.text
