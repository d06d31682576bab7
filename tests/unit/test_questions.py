"""What one node asks of another: that an answer comes whatever happens, and none to nobody."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.nodes import WishKind, WishRow
from clawdforge.core.running.questions import Questions
from clawdforge.core.running.wishes import Wishes
from clawdforge.parts import open_parts
from clawdforge.wire.base import Json
from tests.unit.supervised import make_settings
from tests.unit.test_membership import SharedStore, joined

WISH = WishRow(
    wish_id="w",
    app_name="app",
    session_id="s",
    node="b",
    kind=WishKind.RESTORE_FILES,
    wished_at=1,
    body=orjson.dumps({"wish_id": "w", "by": "a"}).decode(),
)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SharedStore]:
    opened = await SharedStore.open(tmp_path / "data", SystemClock())
    assert isinstance(opened, SharedStore)
    yield opened
    await opened.close()


@pytest.mark.parametrize(
    ("failure", "code", "text"),
    [
        (OverflowError, "conflict", "the server that has the files failed; see its log"),
        (asyncio.CancelledError, "no_answer", None),
    ],
)
async def test_whoever_asked_is_answered_also_when_nobody_foresaw_what_failed(
    store: SharedStore, failure: type[BaseException], code: str, text: str | None
) -> None:
    await joined(store, "a")
    questions = Questions(store, SystemClock(), await joined(store, "b"))

    async def fail(_: Json) -> Json:
        raise failure

    with pytest.raises(failure):
        await questions.answer(WISH, fail)
    (answer,) = await store.write_system(lambda tx: tx.take_wishes("a"))
    said = orjson.loads(answer.body or "")
    assert (answer.kind, said["to"], said["code"], said["error"]) == (WishKind.ANSWER, "w", code, text)


async def test_nothing_is_written_to_a_node_that_is_gone(store: SharedStore) -> None:
    dead = await joined(store, "dead")
    assert await store.write_system(lambda tx: tx.declare_dead(dead.node, 0))
    questions = Questions(store, SystemClock(), await joined(store, "b"))

    async def work(_: Json) -> Json:
        return {}

    for node in ("dead", "gone"):
        await questions.answer(replace(WISH, body=orjson.dumps({"wish_id": "w", "by": node}).decode()), work)
        assert not await store.read_system(lambda view, node=node: view.has_wishes(node))  # type: ignore[misc]


async def test_a_wish_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    async with asyncio.timeout(60), open_parts(make_settings(tmp_path)) as parts:
        left: list[str] = []

        async def leave(_: str, session_id: str) -> None:
            left.append(session_id)

        wishes = Wishes(
            parts.services.history._store,
            parts.supervisor._elsewhere._membership,
            parts.supervisor,
            parts.supervisor._elsewhere,
            {},
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(parts.supervisor, "leave", leave)
            await wishes._do(WISH)
            await wishes._do(replace(WISH, session_id="left", kind=WishKind.LEAVE))
        assert left == ["left"]
