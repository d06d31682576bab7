"""A prompt of megabytes: what can be computed of it before the write keeps nobody else from writing."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from clawdforge.core.rules import turns as rules
from clawdforge.core.rules.fingerprints import fingerprint
from clawdforge.core.services import turns as services
from clawdforge.core.services.turns import LONG_PROMPT
from clawdforge.parts import Parts, open_parts
from clawdforge.stores.sqlite.writer import Writer
from clawdforge.wire.errors import KeyReused
from clawdforge.wire.session import CreateSession
from clawdforge.wire.turn import TurnRequest
from tests.unit.supervised import APP, make_settings


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    async with asyncio.timeout(60), open_parts(make_settings(tmp_path)) as opened:
        yield opened
        await opened.supervisor.stop(0)


async def test_the_digest_of_a_long_prompt_is_not_computed_by_the_writer(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []
    slices: list[bool] = []
    submit = Writer.submit

    def note(request: TurnRequest) -> str:
        threads.append(threading.current_thread().name)
        return fingerprint(request)

    def note_job(writer: Writer, app: str | None, work: Any, *, is_slice: bool = False) -> Any:
        if "TurnService._record" in work.__qualname__:
            slices.append(is_slice)
        return submit(writer, app, work, is_slice=is_slice)

    monkeypatch.setattr(rules, "fingerprint", note)
    monkeypatch.setattr(services, "fingerprint", note)
    monkeypatch.setattr(Writer, "submit", note_job)
    session_id = (await parts.services.sessions.create(APP, CreateSession())).row.session_id
    turns = parts.services.turns
    long = "word " * (LONG_PROMPT // 5 + 1)
    first = await turns.submit(APP, session_id, TurnRequest(prompt=long), "key")
    assert threads
    assert "store-writer" not in threads
    again = await turns.submit(APP, session_id, TurnRequest(prompt=long), "key")
    assert again.replayed
    assert again.turn.turn_index == first.turn.turn_index
    with pytest.raises(KeyReused):
        await turns.submit(APP, session_id, TurnRequest(prompt=long + "!"), "key")
    await turns.submit(APP, session_id, TurnRequest(prompt="short"), "another")
    assert slices == [True, True, True, False], "a long one begins a transaction"
