"""While a server serves, threads change often, and nobody waits for a look through all objects."""

import asyncio
import gc
import sys
import weakref
from typing import Any

import pytest

from clawdforge.core.pacing.interpreter import SWITCH_SECS, collect_now_and_then, short_pauses
from tests.unit.rpc_peer import until


def serve_and_fail() -> None:
    with short_pauses():
        assert sys.getswitchinterval() == pytest.approx(SWITCH_SECS)
        assert gc.get_freeze_count() > 0
        raise RuntimeError


def test_it_is_set_up_and_put_back_also_after_a_failure() -> None:
    before = sys.getswitchinterval(), gc.get_threshold()
    with pytest.raises(RuntimeError):
        serve_and_fail()
    assert (sys.getswitchinterval(), gc.get_threshold()) == before
    assert gc.get_freeze_count() == 0


def test_a_long_answer_is_not_looked_through_while_it_grows() -> None:
    """It was, as a whole, whenever it had grown by a quarter."""
    looks: list[int] = []

    def note(phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            looks.append(info["generation"])

    with short_pauses():
        gc.callbacks.append(note)
        try:
            answer = [{"content": [number]} for number in range(200_000)]
        finally:
            gc.callbacks.remove(note)
    assert len(answer) == 200_000
    assert set(looks) == {0, 1}


async def test_what_is_old_and_forgotten_goes_in_the_end() -> None:
    class Ring:
        def __init__(self) -> None:
            self.itself = self

    with short_pauses():
        ring = Ring()
        gone = weakref.ref(ring)
        gc.collect(1)
        gc.collect(1)  # it is among the oldest now
        del ring
        assert gc.get_count()[2] > 0
        collecting = asyncio.create_task(collect_now_and_then(0.01))
        try:
            await until(lambda: gone() is None)
        finally:
            collecting.cancel()
