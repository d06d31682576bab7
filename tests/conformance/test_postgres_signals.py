"""Nodes tell each other of their commits as soon as there are others, and not before."""

import asyncio
from collections.abc import Callable, Iterator

import pytest

from clawdforge.core.models.events import StoredEvent
from clawdforge.core.models.rows import Commit
from clawdforge.stores.postgres.signals import ALONE_SECS, Signals
from tests.conformance.stores.samples import APP
from tests.needs import needs
from tests.postgres import run_postgres

pytestmark = needs("postgres")
SECS = 30.0


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with run_postgres() as postgres:
        yield postgres.make_empty()


class Node:
    def __init__(self, url: str, name: str) -> None:
        self.heard: list[tuple[str, str]] = []
        self.signals = Signals(url, self._deliver)
        self.signals.start(name)

    def _deliver(self, commits: list[Commit], _: set[str]) -> None:
        self.heard += [(one.app, one.session_id) for one in commits]

    def commit(self, session: str) -> None:
        self.signals.note([Commit(APP, session, (StoredEvent(1, "text", 1, b"{}"),))], ())


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECS):
        while not condition():  # noqa: ASYNC110 - what Postgres sends, and when, is its doing
            await asyncio.sleep(0.005)


async def test_a_node_tells_of_its_commits_when_there_is_another(url: str) -> None:
    first = Node(url, "first")
    await until(lambda: first.signals._heard == 1)
    first.commit("alone")
    assert not first.signals._waiting.is_set(), "nobody is there to be told"
    second = Node(url, "second")
    await until(lambda: not first.signals._is_alone())
    first.commit("told")
    await until(lambda: (APP, "told") in second.heard)
    told = second.heard.index((APP, "told"))
    assert second.heard[:told].count(("", "")) == 2, "by itself, and again when it was heard"
    second.commit("back")
    await until(lambda: (APP, "back") in first.heard)
    await asyncio.gather(first.signals.close(), second.signals.close())


async def test_a_node_that_does_not_hear_itself_counts_on_others(url: str) -> None:
    node = Node(url, "only")
    await until(lambda: node.signals._heard == 1)
    node.signals._is_deaf = True
    node.commit("perhaps")
    assert node.signals._waiting.is_set()
    await node.signals.close()


async def test_who_was_not_heard_for_long_is_gone(url: str) -> None:
    first, second = Node(url, "first"), Node(url, "second")
    await until(lambda: not first.signals._is_alone())
    await second.signals.close()
    first.signals._others_at -= ALONE_SECS
    first.commit("alone")
    assert (APP, "alone") not in first.signals._commits
    await first.signals.close()
