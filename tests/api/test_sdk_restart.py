"""The server is killed and started again in the middle of a stream; the caller misses nothing."""

import concurrent.futures
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from clawdforge import AsyncForge, Event, Forge, TurnResult
from clawdforge.client.errors import TurnInterrupted
from clawdforge.client.models import OnInterruptWord
from tests.api.harness import App, Server
from tests.databases import Store

pytestmark = pytest.mark.on_both

SLOW = "chunks 400 8 20"


@pytest.fixture
def steady(tmp_path: Path, store: Store) -> Iterator[Server]:
    """A server that comes back on the same port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = Server(tmp_path / "data", None, "--port", str(port), store=store)
    yield server
    server.stop()


def kill_and_restart(server: Server) -> None:
    server.stop(signal.SIGKILL)
    server.start()


def words(events: list[Event]) -> str:
    return "".join(event.text for event in events if event.type == "text")


def check_whole(seen: list[Event], result: TurnResult, forge: Forge, session_id: str) -> None:
    """What was seen is the log, without a gap or a repeat, and the log is what was said."""
    log = list(forge.attach(session_id).events())
    assert [event.seq for event in log] == list(range(1, len(log) + 1))
    assert seen == [event for event in log if event.turn == result.turn_index]
    assert [event.type for event in seen].count("turn.ended") == 1
    assert result.text() == words(seen)
    assert result.text() == "".join(f"{n:.<7} " for n in range(1, 401))[: len(result.text())]


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["hold", "continue", "retry"])
def test_a_stream_outlives_the_server(steady: Server, policy: OnInterruptWord) -> None:
    app: App = steady.app()
    with Forge(steady.url, app.token) as forge:
        session = forge.create_session(agent="claude", on_interrupt=policy)
        seen: list[Event] = []
        crash = threading.Thread(target=kill_and_restart, args=(steady,))
        with session.stream(SLOW) as stream:
            for event in stream:
                seen.append(event)
                if event.type == "text" and crash.ident is None and len(seen) > 20:
                    crash.start()
            result = stream.result()
        crash.join(60)
        assert result.outcome == "interrupted"
        assert len(result.text()) >= 8 * 15
        check_whole(seen, result, forge, session.session_id)
        turns = list(session.turns())
        assert len(turns) == (1 if policy == "hold" else 2)
        if policy != "hold":
            assert turns[1].retry_of == 1
            session.cancel()
            with session.watch(2) as second:
                assert second.result().outcome in ("cancelled", "completed")


@pytest.mark.slow
def test_a_queued_turn_is_streamed_whole_across_a_restart(steady: Server) -> None:
    app: App = steady.app()
    with Forge(steady.url, app.token) as forge:
        session = forge.create_session(agent="claude")
        session.submit("sleep 60")
        crash = threading.Thread(target=kill_and_restart, args=(steady,))
        seen: list[Event] = []
        with session.stream("chunks 400 8 0") as stream:
            for event in stream:
                seen.append(event)
                if event.type == "turn.queued":
                    crash.start()
            result = stream.result()
        crash.join(60)
        assert (result.outcome, len(result.text())) == ("completed", 3200)
        check_whole(seen, result, forge, session.session_id)


@pytest.mark.slow
async def test_the_awaiting_client_outlives_the_server(steady: Server) -> None:
    app: App = steady.app()
    async with AsyncForge(steady.url, app.token) as forge:
        session = await forge.create_session(agent="claude")
        seen: list[Event] = []
        crash = threading.Thread(target=kill_and_restart, args=(steady,))
        async with session.stream(SLOW) as stream:
            async for event in stream:
                seen.append(event)
                if event.type == "text" and crash.ident is None:
                    crash.start()
            result = await stream.result()
        crash.join(60)
    with Forge(steady.url, app.token) as reader:
        assert result.outcome == "interrupted"
        check_whole(seen, result, reader, session.session_id)


@pytest.mark.slow
def test_a_prompt_is_never_run_twice(steady: Server) -> None:
    """The answer to `turn()` is lost with the server; the same key finds the same turn again."""
    app: App = steady.app()
    with Forge(steady.url, app.token, retries=12) as forge:
        session = forge.create_session(agent="claude")
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(session.turn, SLOW)
            follower = session.follow()
            next(event for event in follower if event.type == "text")
            kill_and_restart(steady)
            with pytest.raises(TurnInterrupted) as cut_off:
                waiting.result(60)
        assert cut_off.value.body["turn_index"] == 1
        assert [turn.outcome for turn in session.turns()] == ["interrupted"]
