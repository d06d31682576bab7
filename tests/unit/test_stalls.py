"""The check that runs beside every test: what of ours computes too long is found, and nothing else."""

import asyncio
import time
from pathlib import Path

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.rows import SessionRow
from clawdforge.core.services.finishing import Finisher
from clawdforge.stores import open_store
from clawdforge.stores.sqlite.writer import Writer
from tests.support.stalls import Stalls


def compute(seconds: float) -> None:
    begun = time.thread_time()
    while time.thread_time() - begun < seconds:
        pass


async def test_steps_and_jobs_of_ours_are_found_and_those_of_a_test_are_not(tmp_path: Path) -> None:
    stalls = Stalls(loop_secs=-1.0, job_secs=-1.0, read_stolen=float)  # everything takes longer than that
    run = Writer._run_job
    with stalls.watch():
        store = await open_store(tmp_path / "data", SystemClock())
        row = SessionRow(app_name="a", session_id="s", agent="d", cwd="/", created_at=1, updated_at=1)
        await store.write("a", lambda tx: tx.add_session(row))
        assert stalls.found == []
        await asyncio.create_task(Finisher(store).finish("a", "s"))
        await store.close()
    assert any("Finisher.finish held up the event loop" in found for found in stalls.found)
    assert any("Finisher.finish.<locals>.step held up the writer" in found for found in stalls.found)
    assert Writer._run_job is run


def test_waiting_and_collecting_garbage_do_not_count() -> None:
    stalls = Stalls(read_stolen=float)  # nothing was
    with stalls.watch():
        with stalls.timed("a short one", 0.05, "ran"):
            time.sleep(0.06)
        with stalls.timed("a pause", 0.05, "ran"):
            stalls._on_collection("start", {})
            compute(0.06)
            stalls._on_collection("stop", {})
        with stalls.timed("a long one", 0.05, "ran"):
            compute(0.06)
    assert [found.split(" ran")[0] for found in stalls.found] == ["a long one"]


@pytest.mark.parametrize(("stolen", "is_found"), [(0.0, True), (0.01, True), (1.0, False)])
def test_what_the_host_has_stolen_is_not_ours(stolen: float, is_found: bool) -> None:
    """The clock of a thread runs on while its processor is somebody else's."""
    reads = iter([5.0, 5.0 + stolen])
    stalls = Stalls(read_stolen=lambda: next(reads))
    with stalls.watch(), stalls.timed("a long one", 0.05, "ran"):
        compute(0.1)
    assert bool(stalls.found) is is_found
