"""The writer's queue: apps in turn, each in its own order, slices apart and with at most half of the time."""

import asyncio
import threading
from collections.abc import Iterator
from functools import partial

import pytest

from clawdforge.stores.sqlite.job_queue import Job, JobQueue, tell


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


class Line:
    """Jobs that are known by their number."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.now = 0.0
        self.queue = JobQueue(lambda: self.now)
        self._loop = loop
        self._names: dict[int, str] = {}

    def put(self, app: str | None, name: str, *, is_slice: bool = False) -> None:
        job = Job(app, lambda _: None, self._loop.create_future(), is_slice)
        self._names[id(job)] = name
        assert self.queue.put(job)

    def name(self, job: Job | None) -> str | None:
        return None if job is None else self._names[id(job)]

    def first(self, took: float = 0.0) -> str | None:
        job = self.queue.take_first(0)
        if job is not None:
            self.queue.count(job, took)
        return self.name(job)

    def more(self) -> str | None:
        return self.name(self.queue.take_more())

    def transaction(self, took: float) -> list[str]:
        """All that comes into one transaction, if each job takes so long."""
        names, job = [], self.queue.take_first(0)
        while job is not None:
            names.append(self._names[id(job)])
            self.now += took
            self.queue.count(job, took, took)
            job = self.queue.take_more()
        return names


@pytest.fixture
def line(loop: asyncio.AbstractEventLoop) -> Line:
    return Line(loop)


def test_a_crowd_of_one_app_delays_another_by_one_job(line: Line) -> None:
    for number in range(1000):
        line.put("noisy", f"n{number}")
    line.put("quiet", "q0")
    line.put("quiet", "q1")
    line.put(None, "system")
    taken = [line.first(), *(line.more() for _ in range(6))]
    assert taken == ["n0", "q0", "system", "n1", "q1", "n2", "n3"]


def test_an_app_keeps_its_order_also_behind_a_slice(line: Line) -> None:
    line.put("a", "first")
    line.put("a", "slice", is_slice=True)
    line.put("a", "last")
    assert [line.first(), line.more()] == ["first", None]
    assert [line.first(), line.more(), line.more()] == ["slice", "last", None]


def test_a_slice_begins_a_transaction_and_is_alone_of_its_kind_in_it(line: Line) -> None:
    line.put("a", "slice a", is_slice=True)
    line.put("b", "slice b", is_slice=True)
    line.put("c", "plain")
    assert [line.first(), line.more(), line.more()] == ["slice a", "plain", None]
    assert line.first() == "slice b"


def test_while_others_wait_slices_get_half_of_the_time(line: Line) -> None:
    for number in range(100):
        line.put("quiet", f"q{number}")
    kinds = ""
    for number in range(40):
        line.put("noisy", f"s{number}", is_slice=True)
        took = 0.03 if (job := line.queue.take_first(0)) is not None and job.is_slice else 0.01
        assert job is not None
        line.queue.count(job, took)
        kinds += "s" if job.is_slice else "q"
    assert kinds.startswith("sqqqsqqqs")
    assert 28 <= kinds.count("q") <= 31


def test_slices_of_several_apps_come_in_turn(line: Line) -> None:
    for number in range(3):
        line.put("a", f"a{number}", is_slice=True)
        line.put("b", f"b{number}", is_slice=True)
    assert [line.first(0.01) for _ in range(6)] == ["a0", "b0", "a1", "b1", "a2", "b2"]


def test_time_that_nobody_wanted_is_not_saved_up(line: Line) -> None:
    line.put("quiet", "long ago")
    assert line.first(1000.0) == "long ago"
    line.put("noisy", "s0", is_slice=True)
    assert line.first(0.01) == "s0"
    line.put("noisy", "s1", is_slice=True)
    line.put("quiet", "now")
    assert line.first() == "now"


def test_what_was_put_before_it_was_closed_is_still_there(line: Line) -> None:
    line.put("a", "one")
    line.queue.close()
    assert not line.queue.put(Job("a", lambda _: None, line._loop.create_future()))
    assert line.queue.take_first(None) is not None
    assert line.queue.take_first(None) is None
    assert line.queue.is_empty()


def test_whoever_waits_is_woken_by_a_job_and_by_the_end(line: Line) -> None:
    found: list[str | None] = []

    def wait() -> None:
        found.append(line.name(line.queue.take_first(None)))
        found.append(line.name(line.queue.take_first(None)))

    thread = threading.Thread(target=wait)
    thread.start()
    line.put("a", "one")
    line.queue.close()
    thread.join(30)
    assert found == ["one", None]


def test_slices_of_a_quiet_hour_are_not_held_against_the_next_one(line: Line) -> None:
    for number in range(1000):
        line.put("long", f"s{number}", is_slice=True)
        assert line.first(took=0.03) == f"s{number}"
    line.put("long", "next", is_slice=True)
    for number in range(200):
        line.put("busy", f"b{number}")
    taken = [line.first(took=0.001) for _ in range(40)]
    assert taken.index("next") == 30, "others have had as long as the slice before took"


def test_whoever_has_had_more_than_its_share_waits_for_the_others(line: Line) -> None:
    line.put("quiet", "q0")
    line.put("noisy", "n0")
    assert [line.first(), line.more()] == ["q0", "n0"]
    line.queue.charge({"noisy": 0.2, "quiet": 0.001}, commit=0.1)
    line.put("noisy", "n1")
    line.put(None, "system")
    line.put("quiet", "q1")
    assert [line.first(), line.more(), line.more()] == ["system", "q1", None]
    assert line.first() is None, "it would have to wait"
    line.now = 0.9
    assert line.first() is None
    line.now = 1.1
    assert line.first() == "n1"


def test_nobody_waits_for_what_others_made_of_its_commits(line: Line) -> None:
    """The noisy app had rested from its large one, and so the quiet app had had the most."""
    line.put("quiet", "q")
    line.put("noisy", "n")
    assert [line.first(), line.more()] == ["q", "n"]
    line.queue.charge({"quiet": 0.001}, commit=0.002)
    for number in range(20):
        line.put("quiet", f"q{number}")
        assert line.first() == f"q{number}"
        line.now += 0.1
        line.put("noisy", f"n{number}")
        line.queue.charge({"quiet": 0.001}, commit=0.1)
        assert line.first() == f"n{number}"


def test_who_writes_much_has_all_of_its_commits(line: Line) -> None:
    line.put("quiet", "q")
    line.put("noisy", "n0")
    assert [line.first(), line.more()] == ["q", "n0"]
    line.queue.charge({"quiet": 0.001}, commit=0.002)
    line.queue.charge({"noisy": 0.03}, commit=0.1)
    line.put("noisy", "n1")
    line.now = 0.35
    assert line.first() is None, "three times as long as all of it"
    line.now = 0.37
    assert line.first() == "n1"


def test_at_the_end_nobody_waits(line: Line) -> None:
    line.put("quiet", "q0")
    line.put("noisy", "n0")
    assert [line.first(), line.more()] == ["q0", "n0"]
    line.queue.charge({"noisy": 0.9}, commit=0.1)
    line.put("noisy", "n1")
    line.queue.close()
    assert line.name(line.queue.take_first(None)) == "n1"
    assert line.queue.take_first(None) is None


def test_whoever_has_to_wait_comes_by_itself_after_that(loop: asyncio.AbstractEventLoop) -> None:
    """With the real clock: the thread that takes jobs sleeps until then, or until somebody else comes."""
    queue = JobQueue()
    jobs = [Job(app, lambda _: None, loop.create_future()) for app in ("quiet", "noisy", "noisy", "quiet")]
    for job in jobs[:2]:
        assert queue.put(job)
        assert queue.take_first(0) is job
    queue.charge({"noisy": 0.05}, commit=0.0)
    assert queue.put(jobs[2])
    taken: list[Job | None] = []
    taking = threading.Thread(target=lambda: taken.extend(queue.take_first(30) for _ in range(2)))
    taking.start()
    assert queue.put(jobs[3])
    taking.join(60)
    assert set(map(id, taken)) == set(map(id, jobs[2:]))


def test_a_transaction_of_two_apps_soon_closes_to_both(line: Line) -> None:
    """A caller that was done waited for 25 ms of a crowd's jobs, and for the commit of all of them."""
    for number in range(200):
        line.put("noisy", f"n{number}")
    line.put("quiet", "q0")
    taken = line.transaction(took=0.0002)
    assert taken[:3] == ["n0", "q0", "n1"]
    assert 15 <= len(taken) <= 16


def test_whoever_comes_while_a_crowd_writes_closes_the_transaction(line: Line) -> None:
    for number in range(200):
        line.put("noisy", f"n{number}")
    assert line.first() == "n0"
    line.now += 0.02
    line.put("quiet", "q0")
    assert [line.more(), line.more(), line.more()] == ["n1", "q0", None]


def test_jobs_of_one_app_and_of_fifty_equal_ones_share_a_commit(line: Line) -> None:
    """As many in a transaction as before it had to close for others."""
    for number in range(200):
        line.put("busy", f"b{number}")
    assert len(line.transaction(took=0.0002)) >= 125
    line.queue.take_all()
    for number in range(150):
        line.put(f"app {number % 50}", f"j{number}")
    assert [len(line.transaction(took=0.0002)) for _ in range(3)] == [50, 50, 50]


def test_what_takes_long_comes_only_first_in_a_transaction_with_others(line: Line) -> None:
    line.put("noisy", "n0")
    assert line.transaction(took=0.006) == ["n0"]
    line.put("quiet", "q0")
    line.put("noisy", "n1")
    line.put("other", "o0")
    assert [line.first(), line.more(), line.more()] == ["q0", "o0", None]
    assert [line.first(), line.more()] == ["n1", None]
    line.put("noisy", "n2")
    line.put("quiet", "q1")
    line.now += 1.0
    assert [line.first(), line.more(), line.more()] == ["n2", "q1", None], "it is known for it for a while"
    line.put("quiet", "q2")
    line.put("noisy", "n3")
    assert [line.first(), line.more()] == ["q2", "n3"]


def test_what_takes_long_is_one_transaction_among_itself(line: Line) -> None:
    line.put("busy", "before")
    assert line.transaction(took=0.006) == ["before"]
    for number in range(8):
        line.put("busy", f"b{number}")
    assert line.transaction(took=0.006) == ["b0", "b1", "b2", "b3", "b4"]
    line.put("quiet", "q0")
    assert line.transaction(took=0.001)[:2] == ["b5", "q0"], "somebody else is not made to wait for it"


def test_a_busy_machine_makes_no_job_a_long_one(line: Line) -> None:
    line.put("quiet", "q0")
    assert line.first(took=0.5) == "q0"
    line.put("other", "o0")
    line.put("quiet", "q1")
    assert [line.first(), line.more()] == ["o0", "q1"]


def test_the_bytes_of_a_transaction_are_those_of_whoever_computed_most(line: Line) -> None:
    line.put("quiet", "q0")
    line.put("noisy", "n0")
    assert [line.first(), line.more()] == ["q0", "n0"]
    for _ in range(3):
        line.queue.charge({"noisy": 0.004, "quiet": 0.0004}, commit=0.001, written=8 << 20)
    line.put("noisy", "n1")
    line.put("quiet", "q1")
    assert [line.first(), line.more()] == ["q1", None]


def test_a_listener_that_fails_keeps_nobody_from_being_told(loop: asyncio.AbstractEventLoop) -> None:
    told: list[str] = []

    def fail(name: str) -> None:
        told.append(name)
        raise ValueError(name)

    calls = [partial(fail, "first"), partial(told.append, "second"), partial(fail, "third")]
    job = Job("a", lambda _: None, loop.create_future())
    job.result = 1
    with pytest.raises(ValueError, match="third"):
        tell([*calls, partial(told.append, "last")], [job])
    assert told == ["first", "second", "third", "last"]
    assert job.future.result() == 1
