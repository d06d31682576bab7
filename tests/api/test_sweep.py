"""Sweep, retention and purge (S0-80 to S0-91, X-09), on real servers; the ledger is edited with plain SQL."""

import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from tests.api.harness import App, Server, until
from tests.support.folders import everything_below

HOUR, DAY = 3600, 86_400
LOGGED = (
    "SELECT (SELECT count(*) FROM events) + (SELECT coalesce(sum(last_seq - first_seq + 1), 0) FROM packs)"
)


def sweep(server: Server) -> dict[str, Any]:
    reply = server.admin().post("/admin/sweep")
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


def audited(server: Server, session_id: str) -> list[str]:
    statement = "SELECT event FROM session_events WHERE session_id = ? ORDER BY number"
    return [event for (event,) in server.sql(statement, session_id)]


@pytest.fixture
def alone(start: Callable[..., Server]) -> Server:
    """A server whose sweeper only works when it is told to."""
    return start(SWEEP_SECS="3600")


def test_a_session_says_when_it_will_go(alone: Server) -> None:
    app = alone.app()
    state = app.http.post("/sessions", json={"agent": "claude"}).json()
    where = f"/sessions/{state['session_id']}"
    assert state["closes_at"] == state["created_at"] + HOUR
    assert state["deletes_at"] == state["closes_at"] + DAY
    limits = app.http.get("/limits").json()
    assert (limits["closes_after_secs"], limits["deletes_after_secs"]) == (HOUR, DAY)
    app.turn(state["session_id"], "echo x")
    used = app.http.get(where).json()
    assert used["closes_at"] == used["last_turn_at"] + HOUR
    assert app.http.get("/sessions").json()["sessions"][0]["closes_at"] == used["closes_at"]
    app.http.post(f"{where}/turns", json={"prompt": "hang"})
    busy = app.http.get(where).json()
    assert (busy["closes_at"], busy["deletes_at"]) == (None, None)
    app.http.delete(where)
    closed = app.http.get(where).json()
    assert (closed["closes_at"], closed["deletes_at"]) == (None, closed["closed_at"] + DAY)
    kept = app.http.post("/sessions", json={"agent": "claude", "retention": "keep"}).json()
    assert (kept["closes_at"], kept["deletes_at"]) == (None, None)


def test_an_idle_session_is_closed_and_a_long_closed_one_deleted(alone: Server) -> None:
    """S0-81, S0-83, S0-84, S0-85, S0-90; times are edited in whole seconds or in microseconds."""
    app = alone.app()
    now = int(time.time())
    for unit in (1, 1_000_000):
        session_id, fresh = app.session(), app.session()
        alone.sql(
            "UPDATE sessions SET created_at = ? WHERE session_id = ?",
            (now - 2 * HOUR) * unit,
            session_id,
        )
        assert sweep(alone) == {"ok": True, "soft_closed": 1, "hard_deleted": 0}
        row = app.http.get(f"/sessions/{session_id}").json()
        assert (row["state"], row["live"], row["closed_at"] >= now) == ("ended", False, True)
        assert app.http.get(f"/sessions/{fresh}").json()["live"] is True
        assert app.turn(session_id, "echo late").status_code == 410
        assert sweep(alone) == {"ok": True, "soft_closed": 0, "hard_deleted": 0}
        alone.sql(
            "UPDATE sessions SET closed_at = ? WHERE session_id = ?",
            (now - 2 * DAY) * unit,
            session_id,
        )
        assert sweep(alone) == {"ok": True, "soft_closed": 0, "hard_deleted": 1}
        assert app.http.get(f"/sessions/{session_id}").json()["code"] == "session_not_found"
        listed = [row["session_id"] for row in app.http.get("/sessions").json()["sessions"]]
        assert session_id not in listed
        assert audited(alone, session_id) == ["create", "sweep_close", "hard_delete"]


def test_idle_counts_from_the_last_turn_and_kept_sessions_stay(alone: Server) -> None:
    """S0-82, X-09."""
    app = alone.app()
    turned, kept, gone = app.session(), app.session(retention="keep"), app.session(retention="keep")
    app.turn(turned, "echo hi")
    app.http.delete(f"/sessions/{gone}")
    alone.sql("UPDATE sessions SET created_at = 1")
    alone.sql("UPDATE sessions SET closed_at = 1 WHERE closed_at IS NOT NULL")
    assert sweep(alone) == {"ok": True, "soft_closed": 0, "hard_deleted": 0}
    assert [app.http.get(f"/sessions/{one}").json()["live"] for one in (turned, kept, gone)] == [
        True,
        True,
        False,
    ]
    alone.sql("UPDATE sessions SET last_turn_at = 5 WHERE session_id = ?", turned)
    until(lambda: sweep(alone)["soft_closed"], "the sweep")  # while its home is copied, it is busy


def test_a_damaged_row_costs_the_other_sessions_nothing(start: Callable[..., Server]) -> None:
    """It ended the sweeper without a word: no session of anybody was closed or deleted any more."""
    server = start(SWEEP_SECS="0.2")
    app, other = server.app(), server.app()
    damaged, sound = app.session(), other.session()
    if server.store == "postgres":
        pytest.skip("a column of Postgres holds only what its type says")
    server.sql("UPDATE sessions SET created_at = 1, head = 'lost' WHERE session_id = ?", damaged)
    until(lambda: "the sweep could not do this" in server.log_text, "the log of the damaged row")
    server.sql("UPDATE sessions SET created_at = 2 WHERE session_id = ?", sound)
    until(lambda: not other.http.get(f"/sessions/{sound}").json()["live"], "the other session's end")
    assert damaged in server.log_text


def test_a_session_with_a_turn_is_never_swept(alone: Server) -> None:
    app = alone.app()
    session_id = app.session()
    app.http.post(f"/sessions/{session_id}/turns", json={"prompt": "hang"})
    until(lambda: app.http.get(f"/sessions/{session_id}").json()["running_turn"], "the turn's start")
    app.http.post(f"/sessions/{session_id}/turns", json={"prompt": "echo next"})
    alone.sql("UPDATE sessions SET created_at = 1, last_turn_at = 1")
    assert sweep(alone)["soft_closed"] == 0
    app.http.post(f"/sessions/{session_id}/cancel", json={})
    until(lambda: app.http.get(f"/sessions/{session_id}").json()["turn_count"] == 2, "the queued turn")


def test_the_agent_of_a_swept_session_ends_and_its_folders_go_with_it(alone: Server) -> None:
    app = alone.app()
    session_id = app.session()
    cwd = app.http.get(f"/sessions/{session_id}").json()["cwd"]
    app.turn(session_id, "write left.txt x")
    assert alone.client().get("/healthz").json()["live_agents"] == 1
    assert Path(cwd, "left.txt").exists()
    alone.sql("UPDATE sessions SET last_turn_at = 1")
    until(lambda: sweep(alone)["soft_closed"], "the sweep")
    assert alone.client().get("/healthz").json()["live_agents"] == 0
    alone.sql("UPDATE sessions SET closed_at = 1")
    assert sweep(alone)["hard_deleted"] == 1
    for table in ("sessions", "turns", "events", "messages", "permissions"):
        assert alone.sql(f"SELECT count(*) FROM {table}") == [(0,)], table  # noqa: S608 - our own names
    assert not Path(cwd).exists()
    assert everything_below(alone.data_dir, f"*{session_id}*") == []


def test_the_sweeper_works_by_itself(start: Callable[..., Server]) -> None:
    """S0-80."""
    server = start(SWEEP_SECS="0.1", SESSION_TTL_SECS="0.2", SESSION_HARD_TTL_SECS="0.2")
    app = server.app()
    session_id = app.session()
    until(lambda: app.http.get(f"/sessions/{session_id}").status_code == 404, "close and deletion")
    until(lambda: not server.sql("SELECT 1 FROM sessions"), "the purge")
    assert audited(server, session_id) == ["create", "sweep_close", "hard_delete"]


def test_a_purged_session_is_unknown_at_once_and_its_streams_end(alone: Server) -> None:
    app = alone.app()
    session_id = app.session(retention="keep")
    app.turn(session_id, "echo secret")
    app.http.post(f"/sessions/{session_id}/turns", json={"prompt": "hang"})
    with app.stream(f"/sessions/{session_id}/events") as stream:
        stream.upto("turn.ended")
        reply = app.http.post(f"/sessions/{session_id}/purge", json={})
        assert reply.json() == {"ok": True, "session_id": session_id, "purged": True}
        rest = [frame.event for frame in stream]
    assert "session.closed" in rest
    for path in ("", "/events", "/messages", "/turns", "/usage", "/permissions"):
        assert app.http.get(f"/sessions/{session_id}{path}").json()["code"] == "session_not_found"
    assert app.turn(session_id, "echo x").status_code == 404
    assert app.http.post(f"/sessions/{session_id}/purge", json={}).status_code == 404
    sweep(alone)
    assert alone.sql(LOGGED) == [(0,)]
    assert audited(alone, session_id) == ["create", "turn", "turn", "close", "hard_delete"]


def test_a_long_history_is_purged_in_steps(alone: Server) -> None:
    app = alone.app()
    session_id = app.session()
    app.turn(session_id, "chunks 5000")
    assert alone.sql(LOGGED)[0][0] > 5000
    app.http.post(f"/sessions/{session_id}/purge", json={})
    sweep(alone)
    assert alone.sql(LOGGED) == [(0,)]


def race(app: App, session_id: str, count: int, seen: Counter[int], accepted: list[int]) -> None:
    """Prompt as fast as it goes; a session that was closed meanwhile is opened again."""
    waits = random.Random(session_id)  # noqa: S311 - a pace
    for number in range(count):
        path = f"/sessions/{session_id}/{'turns' if number % 3 else 'turn'}"
        reply = app.http.post(path, json={"prompt": "echo hi"})
        seen[reply.status_code] += 1
        if reply.status_code in (200, 202):
            accepted.append(reply.json()["turn_index"])
        elif reply.status_code == 410:
            app.http.post(f"/sessions/{session_id}/reopen", json={})
        time.sleep(waits.random() * 0.2)  # a caller's pace, not synchronisation


@pytest.mark.slow
def test_two_hundred_sweeps_race_prompts_and_no_prompt_is_lost(start: Callable[..., Server]) -> None:
    server = start(SWEEP_SECS="3600", SESSION_TTL_SECS="0", SESSION_HARD_TTL_SECS="3600")
    app, seen = server.app(), Counter[int]()
    sessions = {app.session(): list[int]() for _ in range(6)}
    runners = [
        threading.Thread(target=race, args=(app, session_id, 40, seen, accepted))
        for session_id, accepted in sessions.items()
    ]
    for runner in runners:
        runner.start()
    closed = sweeps = 0
    admin = server.admin()
    while sweeps < 200 or any(runner.is_alive() for runner in runners):
        reply = admin.post("/admin/sweep")
        assert reply.status_code == 200, reply.text
        closed += reply.json()["soft_closed"]
        sweeps += 1
    for runner in runners:
        runner.join()
    assert set(seen) <= {200, 202, 410}, seen
    assert seen[410] > 0, "the sweeper never won"
    assert closed > 0
    for session_id, accepted in sessions.items():
        until(lambda: not _state(app, session_id)["queued_turns"], "the queue")  # noqa: B023 - asked at once
        until(lambda: _state(app, session_id)["running_turn"] is None, "the last turn")  # noqa: B023 - likewise
        turns = app.http.get(f"/sessions/{session_id}/turns", params={"limit": 1000}).json()["turns"]
        assert [turn["turn_index"] for turn in turns] == accepted
        assert {turn["outcome"] for turn in turns} == {"completed"}
        ended = "SELECT turn, count(*) FROM events WHERE session_id = ? AND type = 'turn.ended' GROUP BY turn"
        assert dict(server.sql(ended, session_id)) == dict.fromkeys(accepted, 1)
        seqs = [
            seq
            for (seq,) in server.sql("SELECT seq FROM events WHERE session_id = ? ORDER BY seq", session_id)
        ]
        assert seqs == list(range(1, len(seqs) + 1))


def _state(app: App, session_id: str) -> dict[str, Any]:
    return dict(app.http.get(f"/sessions/{session_id}").json())


def test_old_uploads_go_unless_an_open_session_uses_them(alone: Server) -> None:
    app = alone.app()
    used, unused, fresh = (
        app.http.post("/files", files={"file": ("a.txt", b"content")}).json()["file_token"] for _ in range(3)
    )
    session_id = app.session()
    assert app.turn(session_id, "echo hi", files=[used]).status_code == 200
    alone.sql("UPDATE files SET created_at = 1 WHERE file_token <> ?", fresh)
    sweep(alone)
    assert [app.http.get(f"/files/{token}").status_code for token in (used, unused, fresh)] == [200, 404, 200]
    app.http.delete(f"/sessions/{session_id}")
    sweep(alone)
    assert [app.http.get(f"/files/{token}").status_code for token in (used, fresh)] == [404, 200]


def test_a_purge_that_a_crash_cut_off_is_finished_later(alone: Server) -> None:
    app = alone.app()
    session_id = app.session()
    app.turn(session_id, "chunks 3000")
    cwd = Path(app.http.get(f"/sessions/{session_id}").json()["cwd"])
    app.http.post(f"/sessions/{session_id}/purge", json={})
    alone.stop(signal.SIGKILL)
    for table, number in (("events", "seq"), ("packs", "last_seq")):  # as if some steps had been done
        alone.sql(f"DELETE FROM {table} WHERE {number} > 1000")  # noqa: S608 - from above
    alone.start()
    client = alone.client(app.token)
    assert client.get(f"/sessions/{session_id}").status_code == 404, "deleted stays deleted"
    assert cwd.exists()
    sweep(alone)
    assert alone.sql("SELECT count(*) FROM sessions") == alone.sql(LOGGED) == [(0,)]
    assert not cwd.exists()
    assert audited(alone, session_id)[-1] == "hard_delete"


def test_a_session_is_swept_at_once_after_its_turn(start: Callable[..., Server]) -> None:
    """S0-81: the copy that is made after an answer does not hide an idle session from the sweep."""
    server = start()
    app = server.app()
    for _ in range(5):
        session = app.session()
        app.turn(session, "echo hi")
        server.sql("UPDATE sessions SET created_at=1, last_turn_at=1 WHERE session_id=?", session)
        assert server.admin().post("/admin/sweep").json()["soft_closed"] == 1


@pytest.mark.parametrize(("keep_secs", "left"), [(f"{30 * DAY}", 5), ("0", 1205)])
def test_records_of_runs_are_removed_by_age(start: Callable[..., Server], keep_secs: str, left: int) -> None:
    """All of the old ones in one pass, however many; with 0 they are kept for ever."""
    server = start(SWEEP_SECS="3600", RUN_TTL_SECS=keep_secs)
    now = int(time.time() * 1_000_000)
    columns = "run_id, app_name, prompt, ok, stop_reason, duration_ms, created_at"
    days = [31] * 1200 + [29] * 5
    rows = [(f"run{n}", f"app{n % 3}", now - age * DAY * 1_000_000) for n, age in enumerate(days)]
    marks = ", ".join(["(?, ?, 'p', 1, 's', 1, ?)"] * len(rows))
    server.sql(f"INSERT INTO runs ({columns}) VALUES {marks}", *chain.from_iterable(rows))  # noqa: S608 - ours
    sweep(server)
    assert server.sql("SELECT count(*) FROM runs") == [(left,)]
