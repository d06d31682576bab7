"""One list of scenarios over all three dialects; a session made in one and continued in the others."""

import itertools
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import get_args

import httpx2
import pytest

from clawdforge.http.dialects.hermes.unserved import UNSERVED
from tests.api.dialects import DIALECTS, Dialect, Feature, Seen, upto_end
from tests.api.harness import App, Server, until
from tests.api.hermes_routes import ROUTES
from tests.support.folders import everything_below

pytestmark = pytest.mark.on_both

EVERY = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)


def having(feature: Feature) -> pytest.MarkDecorator:
    """The dialects that can do this. Whoever cannot has said why."""
    able = [one for one in DIALECTS if feature not in {gap.feature for gap in one.missing}]
    return pytest.mark.parametrize("dialect", able, ids=lambda dialect: dialect.name)


def test_whatever_is_left_out_has_a_reason() -> None:
    for dialect in DIALECTS:
        assert {gap.feature for gap in dialect.missing} <= set(get_args(Feature))
        assert all(len(gap.reason) > 20 for gap in dialect.missing)
    assert not DIALECTS[0].missing


@EVERY
def test_create(dialect: Dialect, app: App) -> None:
    session_id = dialect.create(app)
    assert dialect.read(app, session_id).status_code == 200
    assert dialect.transcript(app, session_id) == []
    assert dialect.running(app, session_id) is False


@EVERY
def test_prompt_and_stream(dialect: Dialect, app: App) -> None:
    session_id = dialect.create(app)
    turn = dialect.prompt(app, session_id, "chunks 30\necho fin")
    with dialect.stream(app, session_id, turn, "") as frames:
        found = upto_end(frames)
    assert "".join(frame.text for frame in found) == "".join(f"{n} " for n in range(1, 31)) + "fin"
    assert all(frame.id for frame in found)
    assert len({frame.id for frame in found}) == len(found)
    assert [role for role, _ in dialect.transcript(app, session_id)] == ["user", "assistant"]


@EVERY
def test_a_second_turn_follows_the_first(dialect: Dialect, app: App) -> None:
    session_id = dialect.create(app)
    for number, word in enumerate(("one", "two"), 1):
        turn = dialect.prompt(app, session_id, f"echo {word}")
        assert turn == number
        with dialect.stream(app, session_id, turn, "") as frames:
            upto_end(frames)
    assert [text for _, text in dialect.transcript(app, session_id)] == ["echo one", "one", "echo two", "two"]


@EVERY
def test_resume_from_any_cursor(dialect: Dialect, app: App) -> None:
    session_id = dialect.create(app)
    turn = dialect.prompt(app, session_id, "chunks 5\ntool grep\nchunks 5")
    with dialect.stream(app, session_id, turn, "") as frames:
        whole = upto_end(frames)
    for place, frame in enumerate(whole[:-1]):
        with dialect.stream(app, session_id, turn, frame.id) as frames:
            assert upto_end(frames) == whole[place + 1 :]


@having("tokens")
def test_words_are_seen_before_the_turn_is_over(dialect: Dialect, app: App) -> None:
    session_id = dialect.create(app)
    turn = dialect.prompt(app, session_id, "echo early\nsleep 60")
    with dialect.stream(app, session_id, turn, "") as frames:
        assert next(frame.text for frame in frames if frame.text) == "early"
    assert dialect.running(app, session_id) is True
    app.http.post(f"/sessions/{session_id}/cancel", json={})


@having("permission")
def test_permission(dialect: Dialect, app: App) -> None:
    session_id = dialect.create(app, ask=True)
    turn = dialect.prompt(app, session_id, "ask write a file")
    dialect.allow(app, session_id)
    with dialect.stream(app, session_id, turn, "") as frames:
        assert "permission: allow" in "".join(frame.text for frame in upto_end(frames))


@having("cancel")
def test_cancel(dialect: Dialect, app: App) -> None:
    session_id = dialect.create(app)
    turn = dialect.prompt(app, session_id, "echo kept\nsleep 60")
    with dialect.stream(app, session_id, turn, "") as frames:
        next(frame for frame in frames if frame.text)
        dialect.cancel(app, session_id, turn)
        upto_end(frames)
    assert dialect.running(app, session_id) is False
    assert dialect.transcript(app, session_id)[-1] == ("assistant", "kept")


@having("history")
def test_history(dialect: Dialect, app: App) -> None:
    session_id = dialect.create(app)
    for word in ("one", "two"):
        app.turn(session_id, f"echo {word}")
    assert dialect.undo(app, session_id).json()["removed_count"] == 2
    for shown in DIALECTS:
        assert [text for _, text in shown.transcript(app, session_id)] == ["echo one", "one"], shown.name
    assert dialect.undo(app, session_id).status_code == 200
    last = dialect.undo(app, session_id)
    assert (last.status_code, last.json()["code"]) == (409, "nothing_to_undo")


@EVERY
def test_error(dialect: Dialect, app: App) -> None:
    """X-03: one body on every path; and the session goes on."""
    reply = dialect.read(app, "nonexistent_zzz")
    assert (reply.status_code, reply.json()["code"]) == (404, "session_not_found")
    assert reply.json()["error"] == reply.json()["detail"]
    session_id = dialect.create(app)
    turn = dialect.prompt(app, session_id, "echo so far\nerror no such model")
    with dialect.stream(app, session_id, turn, "") as frames:
        assert "so far" in "".join(frame.text for frame in upto_end(frames))
    turn = dialect.prompt(app, session_id, "echo better")
    with dialect.stream(app, session_id, turn, "") as frames:
        assert "better" in "".join(frame.text for frame in upto_end(frames))


def test_what_is_not_served_answers_501_and_says_why(app: App, server: Server) -> None:
    for route, reason in UNSERVED.items():
        method, _, path = route.partition(" ")
        path = path.replace("{session_id}", "some").replace("{rest}", "some/thing")
        reply = app.http.request(method, path)
        assert (reply.status_code, reply.json()["code"]) == (501, "unsupported"), route
        assert reason in reply.json()["error"]
        assert server.client().request(method, path).status_code == 401, route


def test_no_route_of_hermes_webui_is_unknown_or_takes_another_method(app: App) -> None:
    """Each is asked about a session that there is, so that 404 would speak of the route."""
    kept, deleted = app.session(), app.session()
    for route in ROUTES:
        method, _, path = route.partition(" ")
        named = {"session_id": deleted if path == "/api/session/delete" else kept}
        params, body = (named, None) if method == "GET" else (None, named)
        with app.http.stream(method, path, params=params, json=body) as reply:
            assert reply.status_code not in (404, 405), route


@pytest.mark.parametrize(
    "order", list(itertools.permutations(DIALECTS)), ids=lambda order: "-".join(one.name for one in order)
)
def test_a_session_made_in_one_is_continued_in_the_others(order: tuple[Dialect, ...], app: App) -> None:
    """X-04: one row, one history, seen the same everywhere; the agent remembers across all of them."""
    session_id = order[0].create(app)
    for number, dialect in enumerate(order, 1):
        turn = dialect.prompt(app, session_id, f"echo by {dialect.name}")
        assert turn == number
        with dialect.stream(app, session_id, turn, "") as frames:
            upto_end(frames)
    texts = [text for one in order for text in (f"echo by {one.name}", f"by {one.name}")]
    for dialect in DIALECTS:
        assert [text for _, text in dialect.transcript(app, session_id)] == texts, dialect.name
    recalled = app.turn(session_id, "recall").text
    assert all(f"echo by {one.name}" in recalled for one in order)


def test_one_database_has_the_sessions_of_all(app: App, server: Server) -> None:
    """X-20."""
    made = {dialect.create(app) for dialect in DIALECTS}
    for session_id in made:
        assert app.turn(session_id, "echo hello").status_code == 200
    magic, databases = b"SQLite format 3\0", []
    for path in everything_below(server.data_dir):
        with suppress(FileNotFoundError):  # homes are being copied meanwhile, and marks of that come and go
            if path.is_file() and path.read_bytes()[: len(magic)] == magic:
                databases.append(path.name)
    if server.store == "sqlite":
        assert databases == ["forge.db"]
        assert server.sql("PRAGMA journal_mode") == [("wal",)]
    else:
        assert databases == []
    mine = server.sql("SELECT session_id FROM sessions WHERE app_name = ?", app.name)
    assert {session_id for (session_id,) in mine} == made
    said = server.sql("SELECT DISTINCT session_id FROM messages WHERE content = 'hello'")
    assert made <= {session_id for (session_id,) in said}


@EVERY
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "stopped"])
def test_a_reader_through_three_restarts_loses_nothing_and_sees_nothing_twice(
    dialect: Dialect, how: signal.Signals, start: Callable[..., Server]
) -> None:
    """A turn of words is cut off by each restart; a reader resumes by its last id only."""
    server = start()
    app = server.app()
    session_id = dialect.create(app)
    seen: list[tuple[int, Seen]] = []
    for _ in range(3):
        turn = dialect.prompt(app, session_id, "chunks 400 12 5")
        reader = threading.Thread(target=_read, args=(dialect, app, session_id, turn, seen))
        reader.start()
        until(partial(_words, app, session_id, turn, 20), "some words")
        server.stop(how)
        reader.join(20)
        assert not reader.is_alive()
        server.start()
        app = App(app.name, app.token, app.token_id, server.client(app.token))
        after = next((frame.id for index, frame in reversed(seen) if index == turn), _place(dialect, seen))
        with dialect.stream(app, session_id, turn, after) as frames:
            seen += [(turn, frame) for frame in upto_end(frames)]
    answers = [text for role, text in DIALECTS[0].transcript(app, session_id) if role == "assistant"]
    assert len(answers) == 3
    for turn, text in enumerate(answers, 1):
        assert "".join(frame.text for index, frame in seen if index == turn) == text
    places = [frame.id for _, frame in seen]
    assert len(set(places)) == len(places)


def _read(dialect: Dialect, app: App, session_id: str, turn: int, seen: list[tuple[int, Seen]]) -> None:
    """Read on from the last frame, until the server is gone."""
    with (
        suppress(httpx2.TransportError),
        dialect.stream(app, session_id, turn, _place(dialect, seen)) as frames,
    ):
        seen.extend((turn, frame) for frame in frames)


def _place(dialect: Dialect, seen: list[tuple[int, Seen]]) -> str:
    """A stream of hermes is one turn's; the others go on for ever."""
    return "" if dialect.name == "hermes" or not seen else seen[-1][1].id


def _words(app: App, session_id: str, turn: int, least: int) -> bool:
    page = app.http.get(f"/sessions/{session_id}/events", params={"limit": 1000}).json()["events"]
    return bool(sum(event["turn"] == turn and event["type"] == "text" for event in page) > least)
