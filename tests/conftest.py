"""What holds for every test: the same examples for everybody, signals that arrive, nothing left running."""

import functools
import gc
import os
import signal
import time
from collections.abc import Callable, Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings

from clawdforge.stores.postgres import store as postgres
from clawdforge.stores.sqlite import store as sqlite
from tests.databases import USUAL, databases
from tests.flaky import FLAKY
from tests.needs import forget_answers, skip_without
from tests.support.processes import children, command, end_group, runs
from tests.support.stalls import Stalls

pytest.register_assert_rewrite("tests.conformance.stores", "tests.conformance.drivers")
SEARCH_EXAMPLES = "CLAWDFORGE_TEST_SEARCH_EXAMPLES"
LEFT = "left running"
STAYS = "proofs.kit.zygote"
"""The process that servers are forked from serves all tests of a run."""

LEAVES_WITHIN = 2.0
USUALLY = "not long"
"""What pyproject.toml chooses where a run says nothing."""

SLOW = [HealthCheck.too_slow]

settings.register_profile("fixed", derandomize=True, deadline=None, database=None, suppress_health_check=SLOW)
settings.register_profile(
    "search",
    max_examples=int(os.environ.get(SEARCH_EXAMPLES) or 1000),
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=SLOW,
)
settings.load_profile("search" if SEARCH_EXAMPLES in os.environ else "fixed")


def pytest_configure(config: pytest.Config) -> None:
    """In the background of a shell SIGINT and SIGQUIT are ignored, and every program inherits that.

    A handler is not inherited: with one that does nothing, what a test starts can be interrupted again, and
    the run itself still cannot.
    """
    for number in (signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    if not hasattr(config, "workerinput"):
        forget_answers()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    skip_without(item)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Modules and tests stay to the end: the collector of garbage looks through them once, and not again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid in FLAKY:
            item.add_marker(pytest.mark.xfail(strict=False, reason=f"flaky: {FLAKY[item.nodeid]}"))
    if SEARCH_EXAMPLES in os.environ:
        kept = [item for item in items if getattr(getattr(item, "obj", None), "is_hypothesis_test", False)]
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept


@pytest.fixture(autouse=True, scope="session")
def _databases() -> None:
    """Where servers are to keep their rows in Postgres, it is there before the first test, and stays."""
    if USUAL == "postgres":
        databases()


@pytest.fixture(autouse=True, scope="session")
def _statements_are_read_once() -> Iterator[None]:
    """They are the same for every store, of which a run opens thousands."""
    with pytest.MonkeyPatch.context() as patch:
        for store, name in ((sqlite, "Queries"), (postgres, "PgQueries")):
            patch.setattr(store, name, functools.cache(getattr(store, name)))
        yield


@pytest.fixture(autouse=True)
def _nothing_is_left_running(record_property: Callable[[str, object], None]) -> Iterator[None]:
    """End what a test started and did not end, so that a failure does not make others fail."""
    before = children()
    yield
    end = time.monotonic() + LEAVES_WITHIN
    while left := [pid for pid in children() - before if runs(pid) and STAYS not in command(pid)]:
        if time.monotonic() > end:
            record_property(LEFT, [command(pid) for pid in left])
            for pid in left:
                end_group(pid)
            return
        time.sleep(0.005)


@pytest.fixture(autouse=True)
def _nothing_holds_up_everybody() -> Iterator[None]:
    """Fail a test in which a task of ours kept the event loop, or a job the writer, for too long."""
    stalls = Stalls()
    with stalls.watch():
        yield
    assert not stalls.found, "; ".join(stalls.found)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Name what has to be looked at although the run may be green."""
    if config.getoption("markexpr") == USUALLY:
        terminalreporter.write_line("LEFT OUT for their length: what ./scripts/test -m long runs")
    reports = [report for kind in terminalreporter.stats.values() for report in kind]
    for report in reports:
        for program in dict(getattr(report, "user_properties", ())).get(LEFT, ()):
            terminalreporter.write_line(f"LEFT RUNNING by {report.nodeid}, and ended: {program}")
    for name in sorted({report.nodeid for report in reports if getattr(report, "nodeid", "") in FLAKY}):
        terminalreporter.write_line(f"FLAKY {name}: {FLAKY[name]}")
