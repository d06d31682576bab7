"""Which rounds of the proof of nodes may overlap: one node is always left, and some rounds are alone."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, cast
from unittest import mock

from proofs.nodes.faults import Faults, Node


class Quiet:
    """A database that says no node runs anything."""

    async def fetch(self, _sql: str, *_args: Any) -> list[Any]:
        return []


async def overlap(ways: list[str]) -> list[tuple[str, ...]]:
    """What went on at each begin of a round, in the order of begins."""
    nodes = [mock.Mock(spec=Node, folder=str(number)) for number in range(3)]
    anything: Any = mock.Mock()
    run = mock.Mock(random=random.Random(1))  # noqa: S311 - seeded chance, as in the proof
    faults = Faults(run, nodes, cast("Any", Quiet()), anything, anything)
    running: list[str] = []
    seen: list[tuple[str, ...]] = []
    busy: list[Node] = []

    def fake(way: str) -> Callable[..., Awaitable[None]]:
        async def disturb(*args: Any) -> None:
            node = [one for one in args if isinstance(one, Node)]
            assert not set(busy) & set(node), "two rounds at one node"
            running.append(way)
            busy.extend(node)
            seen.append(tuple(running))
            await asyncio.sleep(0.02)
            running.remove(way)
            for one in node:
                busy.remove(one)

        return disturb

    of_nodes = {way: fake(way) for way in faults._of_nodes}
    of_all = {way: fake(way) for way in faults._of_all}
    with mock.patch.multiple(faults, _of_nodes=of_nodes, _of_all=of_all):
        await asyncio.gather(*map(faults.disturb, ways))
    return seen


def test_two_nodes_are_disturbed_at_once_and_one_is_left() -> None:
    seen = asyncio.run(overlap(["kill", "freeze", "cut", "stop", "clock"]))
    assert len(seen) == 5
    assert max(map(len, seen)) == 2


def test_what_concerns_all_of_them_happens_alone() -> None:
    seen = asyncio.run(overlap(["kill", "database", "inside", "freeze", "failover", "two", "cut"]))
    alone = [running for running in seen if {"database", "inside", "failover", "two"} & set(running)]
    assert alone == [("database",), ("inside",), ("failover",), ("two",)]
