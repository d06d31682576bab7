"""What happens at once: retries side by side, and history changed while a turn runs (X-23)."""

import concurrent.futures
import os
import signal
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from tests.api.harness import App, Server, until
from tests.api.talk import begin, do, found, messages, post, say, state, texts

ROUNDS = int(os.environ.get("CLAWDFORGE_TEST_ROUNDS", "100"))


def imported(app: App, turns: int) -> str:
    rows = []
    for number in range(turns):
        rows += [{"role": "user", "content": f"q{number}"}, {"role": "assistant", "content": f"a{number}"}]
    reply = app.http.post("/sessions/import", json={"messages": rows, "agent": "claude"})
    assert reply.status_code == 200, reply.text
    return str(reply.json()["session_id"])


def at_once(calls: list[Callable[[], httpx2.Response]]) -> list[httpx2.Response]:
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return [done.result(30) for done in [pool.submit(call) for call in calls]]


def test_parallel_retries_never_cut_the_same_turn_twice(app: App) -> None:
    """S2-37, S2-38: every success has a turn of its own, the counts add up, and the rest is a prefix."""
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for number in range(ROUNDS):
            turns = 2 + number % 4
            sid = imported(app, turns)
            replies = list(pool.map(lambda _, sid=sid: post(app, sid, "retry"), range(4)))
            taken = [reply.json() for reply in replies if reply.status_code == 200]
            refused = [reply.json()["code"] for reply in replies if reply.status_code != 200]
            assert len(taken) == min(4, turns)
            assert set(refused) <= {"no_previous_message"}
            words = [body["last_user_text"] for body in taken]
            assert sorted(words, reverse=True) == [f"q{turn}" for turn in range(turns)][::-1][: len(taken)]
            assert sum(body["removed_count"] for body in taken) == 2 * len(taken)
            assert len({body["head"] for body in taken}) == len(taken)
            left = turns - len(taken)
            assert texts(app, sid) == [word for turn in range(left) for word in (f"q{turn}", f"a{turn}")]


def test_retries_that_run_and_undo_side_by_side_leave_one_of_the_right_states(app: App) -> None:
    sid = app.session()
    say(app, sid, "echo one")
    for _ in range(10):
        say(app, sid, "echo two")
        calls: list[Callable[[], httpx2.Response]] = [
            lambda: post(app, sid, "retry", run=True),
            lambda: post(app, sid, "undo"),
            lambda: post(app, sid, "clear"),
            lambda: app.turn(sid, "echo three"),
        ]
        codes = [reply.status_code for reply in at_once(calls)]
        assert codes[3] == 200, "a turn that was accepted is not killed by what went on beside it"
        assert set(codes) <= {200, 409}
        until(lambda: not state(app, sid)["running_turn"] and not state(app, sid)["queued_turns"], "rest")
        shown = texts(app, sid)
        assert len(shown) % 2 == 0
        assert shown[-2:] in (["echo three", "three"], ["echo two", "two"], ["echo one", "one"]) or not shown
        do(app, sid, "clear")
        say(app, sid, "echo one")


@pytest.mark.parametrize("what", ["undo", "redo", "retry", "clear", "compact"])
def test_while_a_turn_runs_or_waits_it_is_refused(app: App, what: str) -> None:
    sid = app.session()
    say(app, sid, "echo one")
    begin(app, sid)
    before = messages(app, sid)
    reply = post(app, sid, what, **({"files": True} if what == "undo" else {}))
    assert (reply.status_code, reply.json()["code"]) == (409, "session_busy"), reply.text
    assert reply.json()["active_turn"] == 2
    assert messages(app, sid) == before
    app.http.post(f"/sessions/{sid}/cancel")
    until(lambda: state(app, sid)["running_turn"] is None, "the turn's end")
    assert texts(app, sid) == ["echo one", "one", "echo begun\nhang", "begun"]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_deleted_stays_deleted_after_the_turn_and_after_a_restart(
    start: Callable[..., Server], how: signal.Signals
) -> None:
    server = start()
    app = server.app()
    sid = app.session(retention="keep")
    say(app, sid, "echo xylophone")
    begin(app, sid)
    assert app.http.post(f"/sessions/{sid}/purge").status_code == 200

    def gone(app: App) -> None:
        for path in ("", "/messages", "/events", "/export", "/turns"):
            assert app.http.get(f"/sessions/{sid}{path}").status_code == 404, path
        for what in ("undo", "redo", "retry", "fork", "clear", "compact", "reopen"):
            assert post(app, sid, what).status_code == 404, what
        assert found(app, "xylophone") == []
        assert app.http.get("/sessions").json()["sessions"] == []

    gone(app)
    server.stop(how)
    server.start()
    app = App(app.name, app.token, app.token_id, server.client(app.token))
    gone(app)
    server.admin().post("/admin/sweep")
    gone(app)


def test_undo_right_after_the_answer_is_not_too_early_for_the_copy(app: App) -> None:
    """The answer comes before the home is copied; a fork or an undo must not miss the copy."""
    sid = app.session()
    for number in range(8):
        say(app, sid, f"echo {number}")
        made: dict[str, Any] = do(app, sid, "fork")
        events = app.http.get(f"/sessions/{made['session_id']}/events").json()["events"]
        assert events[0]["after_turn"] == number + 1
        say(app, made["session_id"], "echo fork")
        events = app.http.get(f"/sessions/{made['session_id']}/events").json()["events"]
        assert [event["how"] for event in events if event["type"] == "context.started"] == ["loaded"]
