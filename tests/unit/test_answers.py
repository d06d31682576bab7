"""The copy after a turn lets those have the answer first who wait for it."""

import asyncio

import pytest

from clawdforge.core.running.answers import Answers
from tests.conformance.stores.samples import a_turn

LONG = 60.0


async def test_nobody_waits_where_no_answer_is_due() -> None:
    answers = Answers()
    async with asyncio.timeout(10):
        await answers.wait_until_given("s", 1, LONG)
        with answers.expect("s", 2), answers.expect("other", 1):
            await answers.wait_until_given("s", 1, LONG)


async def test_all_who_wait_for_a_turn_have_its_answer_first() -> None:
    answers = Answers()
    first, second = answers.expect("s", 1), answers.expect("s", 1)
    first.__enter__()
    second.__enter__()
    waiting = asyncio.create_task(answers.wait_until_given("s", 1, LONG))
    await asyncio.sleep(0)
    first.__exit__(None, None, None)
    done, _ = await asyncio.wait({waiting}, timeout=0.01)
    assert not done
    second.__exit__(None, None, None)
    async with asyncio.timeout(10):
        await waiting
        await answers.wait_until_given("s", 1, LONG)


async def test_who_reads_slowly_does_not_keep_the_copy_from_being_made() -> None:
    answers = Answers()
    with answers.expect("s", 1):
        async with asyncio.timeout(10):
            await answers.wait_until_given("s", 1, 0.01)


async def test_who_expects_an_answer_is_told_how_the_turn_ended_that_ran_here() -> None:
    answers, ended = Answers(), a_turn("s", 1)
    with answers.expect("s", 1):
        assert await answers.find_end("s", 1, runs_here=False) is None
        telling = asyncio.create_task(answers.find_end("s", 1, runs_here=True))
        await asyncio.sleep(0)
        answers.note_end("s", 1, ended)
        answers.note_end("s", 1, None)  # its worker ends as well
        async with asyncio.timeout(10):
            assert await telling is ended
        assert await answers.find_end("s", 1, runs_here=False) is ended
    assert await answers.find_end("s", 1, runs_here=True) is None, "nobody expects it any more"
    answers.note_end("s", 1, ended)
    assert not answers._due


async def test_where_nobody_here_knows_how_a_turn_ended_it_is_looked_up() -> None:
    answers = Answers()
    with answers.expect("s", 1):
        telling = asyncio.create_task(answers.find_end("s", 1, runs_here=True))
        await asyncio.sleep(0)
        answers.note_end("s", 1, None)
        async with asyncio.timeout(10):
            assert await telling is None


async def test_an_answer_that_is_given_at_once_takes_no_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    timers: list[object] = []
    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", lambda *timer: timers.append(timer))
    answers = Answers()
    expected = answers.expect("s", 1)
    expected.__enter__()
    waiting = asyncio.create_task(answers.wait_until_given("s", 1, LONG))
    await asyncio.sleep(0)
    expected.__exit__(None, None, None)
    await waiting
    assert not timers
