"""Schedules of a real server: made and run over HTTP, by the SDK and in the terminal, and through a kill."""

import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from click.testing import CliRunner

from clawdforge import Forge, Unavailable
from clawdforge.cli import main
from clawdforge.client.models import Occurrence
from clawdforge.wire.local import TOKEN_FILE
from tests.api.harness import App, Server, until

YEARLY = {"prompt": "echo hi", "cron": "0 0 1 1 *"}


def soon(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


def add(app: App, **body: Any) -> str:
    reply = app.http.post("/schedules", json={**YEARLY, **body})
    assert reply.status_code == 200, reply.text
    return str(reply.json()["schedule"]["schedule_id"])


def wait_for(forge: Forge, schedule_id: str, count: int = 1) -> list[Occurrence]:
    """Its history, once so many of its turns have ended."""

    def look() -> list[Occurrence] | None:
        found = list(forge.schedule_history(schedule_id))
        return found if sum(one.outcome is not None for one in found) >= count else None

    return until(look, f"{count} turns of a schedule")


def test_a_time_comes_and_the_prompt_is_answered_in_a_new_session(server: Server, app: App) -> None:
    with Forge(server.url, app.token) as forge:
        made = forge.add_schedule("echo it is time", at=soon(1), session={"title": "by the clock"})
        (one,) = wait_for(forge, made.schedule_id)
        assert (one.state, one.outcome) == ("submitted", "completed")
        assert one.session_id is not None
        session = forge.get_session(one.session_id)
        assert (session.title, session.turn_count) == ("by the clock", 1)
        after = forge.get_schedule(made.schedule_id)
        assert (after.state, after.reason, after.next_at) == ("ended", "it has run", None)


def test_a_time_that_comes_while_the_server_is_dead_is_one_turn_after_its_start(
    start: Callable[..., Server],
) -> None:
    server = start()
    app = server.app()
    session_id = app.session(retention="keep")
    with Forge(server.url, app.token) as forge:
        times = [forge.add_schedule("echo once", at=soon(2), session_id=session_id) for _ in range(2)]
        times += [forge.add_schedule("echo once", at=soon(2)) for _ in range(2)]
        server.stop(signal.SIGKILL)
        due = datetime.now(UTC) + timedelta(seconds=2)
        until(lambda: datetime.now(UTC) > due, "the time itself")
        server.start()
    with Forge(server.url, app.token) as forge:
        for made in times:
            assert [one.outcome for one in wait_for(forge, made.schedule_id)] == ["completed"]
        server.stop(signal.SIGKILL)
        server.start()
    with Forge(server.url, app.token) as forge:
        assert sum(session.turn_count for session in forge.list_sessions()) == len(times)
        assert len(forge.list_sessions()) == 3


def test_the_sdk_changes_runs_pauses_pages_and_removes(server: Server, app: App) -> None:
    session_id = app.session(retention="keep")
    with Forge(server.url, app.token) as forge:
        ids = [
            forge.add_schedule("echo hi", cron="0 0 1 1 *", session_id=session_id).schedule_id
            for _ in range(3)
        ]
        assert [one.schedule_id for one in forge.schedules(page_size=2)] == ids
        changed = forge.change_schedule(ids[0], prompt="echo changed", timezone="Asia/Tokyo", paused=True)
        assert (changed.state, changed.timezone, changed.next_at) == ("paused", "Asia/Tokyo", None)
        ran = [forge.run_schedule(ids[0], idempotency_key="k") for _ in range(2)]
        assert ran[0].occurrence_id == ran[1].occurrence_id
        wait_for(forge, ids[0])
        forge.run_schedule(ids[0])
        found = wait_for(forge, ids[0], 2)
        assert [one.turn_index for one in found] == [2, 1]
        assert [one.turn_index for one in forge.schedule_history(ids[0], page_size=1)] == [2, 1]
        assert app.http.get(f"/sessions/{session_id}/messages").json()["messages"][0]["content"] == (
            "echo changed"
        )
        assert forge.change_schedule(ids[0], paused=False).state == "on"
        forge.remove_schedule(ids[0])
        assert [one.schedule_id for one in forge.schedules()] == ids[1:]


def test_what_would_come_is_told_before_anything_is_made(server: Server, app: App) -> None:
    with Forge(server.url, app.token) as forge:
        found = forge.preview_schedule(cron="0 9 * * MON-FRI", timezone="Asia/Tokyo")
        times = [datetime.fromtimestamp(one, ZoneInfo("Asia/Tokyo")) for one in found.times]
        assert [(one.hour, one.minute, one.weekday() < 5) for one in times] == [(9, 0, True)] * 3
        assert times == sorted(set(times))
        assert found.in_words == "At 09:00 on Monday through Friday"
        once = forge.preview_schedule(at="2035-12-01T09:00", timezone="Asia/Tokyo")
        assert (once.in_words, once.times) == (None, [2_080_080_000])
        for wrong in (
            {"cron": "61 9 * * *"},
            {"at": "2001-01-01"},
            {"cron": "* * * * *", "timezone": "Moon"},
        ):
            refused = app.http.post("/schedules/preview", json=wrong)
            assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request"), refused.text
        assert list(forge.schedules()) == []


def test_a_schedule_tells_its_times_in_words_and_what_became_of_the_latest(server: Server, app: App) -> None:
    with Forge(server.url, app.token) as forge:
        made = forge.add_schedule("echo hi", cron="0 0 1 1 *")
        assert (made.in_words, made.last) == ("At 00:00 on January 1", None)
        forge.run_schedule(made.schedule_id)
        wait_for(forge, made.schedule_id)
        second = forge.run_schedule(made.schedule_id)
        wait_for(forge, made.schedule_id, 2)
        for found in (forge.get_schedule(made.schedule_id), *forge.schedules()):
            assert found.last is not None
            assert (found.last.occurrence_id, found.last.outcome) == (second.occurrence_id, "completed")


def test_a_long_list_is_whole_and_in_order(app: App) -> None:
    """It is made in slices, so that other apps are answered in between."""
    ids = [add(app) for _ in range(45)]
    ran = app.http.post(f"/schedules/{ids[-1]}/run").raise_for_status().json()["occurrence"]
    found = app.http.get("/schedules").json()["schedules"]
    assert [one["schedule_id"] for one in found] == ids
    assert [one["schedule_id"] for one in found if one["last"]] == ids[-1:]
    assert found[-1]["last"]["occurrence_id"] == ran["occurrence_id"]


def test_in_the_terminal(start: Callable[..., Server], tmp_path: Path) -> None:
    server = start()
    token = (server.data_dir / TOKEN_FILE).read_text().strip()
    env = {"CLAWDFORGE_URL": server.url, "CLAWDFORGE_TOKEN": token, "HOME": str(tmp_path)}

    def run(*words: str) -> str:
        done = CliRunner(env=env).invoke(main, ["schedules", *words], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    schedule_id = run("add", "echo hi", "--cron", "0 9 * * MON", "--timezone", "UTC", "--keep").strip()
    assert f"{schedule_id}\t0 9 * * MON UTC\ton\t" in run("list")
    session_id, turn = run("run", schedule_id).split()
    assert turn == "1"
    until(lambda: "submitted, completed" in run("history", schedule_id), "the end of the turn")
    assert session_id in run("history", schedule_id)
    run("pause", schedule_id)
    assert '"state": "paused"' in run("show", schedule_id)
    run("resume", schedule_id)
    assert "\ton\t" in run("list")
    run("remove", schedule_id)
    assert run("list") == ""


def test_another_apps_schedule_is_an_unknown_one(server: Server, app: App) -> None:
    schedule_id, other = add(app), server.app()
    for method, path, body in (
        ("GET", "", None),
        ("PATCH", "", {"paused": True}),
        ("DELETE", "", None),
        ("POST", "/run", {}),
        ("GET", "/history", None),
    ):
        replies = [
            other.http.request(method, f"/schedules/{one}{path}", json=body)
            for one in (schedule_id, "0" * 36)
        ]
        assert [(one.status_code, one.json()["code"]) for one in replies] == [(404, "schedule_not_found")] * 2
    session_id = app.session(retention="keep")
    into = other.http.post("/schedules", json={**YEARLY, "session_id": session_id})
    assert (into.status_code, into.json()["code"]) == (404, "session_not_found")
    assert len(app.http.get("/schedules").json()["schedules"]) == 1


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"prompt": "hi"},
        {"prompt": "", "cron": "0 9 * * *"},
        {"prompt": "x" * 100_001, "cron": "0 9 * * *"},
        {"prompt": "hi", "cron": "0 9 * * *", "at": "2040-01-01T00:00"},
        {"prompt": "hi", "cron": "0 0 30 2 *"},
        {"prompt": "hi", "cron": "* * * * * *"},
        {"prompt": "hi", "cron": "0 9 * * *", "timezone": "Mars/Olympus"},
        {"prompt": "hi", "at": "2020-01-01T00:00"},
        {"prompt": "hi", "cron": "0 9 * * *", "session_id": "x", "session": {}},
        {"prompt": "hi", "cron": "0 9 * * *", "overlap": "both"},
        {"prompt": "hi", "cron": "0 9 * * *", "every": "day"},
    ],
)
def test_what_never_comes_or_is_unclear_is_refused(app: App, body: dict[str, Any]) -> None:
    refused = app.http.post("/schedules", json=body)
    assert refused.status_code == 422, refused.text
    assert len(refused.json()["error"]) > 10


def test_a_budget_that_is_spent_refuses_a_time_and_the_history_says_so(server: Server, app: App) -> None:
    with Forge(server.url, app.token) as forge:
        made = forge.add_schedule("echo hi", at=soon(1.5))
        app.http.put("/budgets", json={"scope": "app", "period": "day", "max_tokens": 1})
        app.turn(app.session(), "echo this spends all of it")

        def look() -> list[Occurrence]:
            return list(forge.schedule_history(made.schedule_id))

        (one,) = until(look, "the time of the schedule")
        assert (one.state, one.code) == ("refused", "budget_exceeded")
        assert forge.get_schedule(made.schedule_id).reason == "its time was refused"
        with pytest.raises(Unavailable, match="budget"):
            forge.run_schedule(made.schedule_id)


def test_the_operator_can_turn_them_off(start: Callable[..., Server]) -> None:
    server = start(SCHEDULES="false")
    app = server.app()
    refused = app.http.post("/schedules", json=YEARLY)
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert "CLAWDFORGE_SCHEDULES=true" in refused.json()["error"]
    assert app.http.get("/schedules").json()["schedules"] == []


def test_what_an_mcp_server_is_given_is_shown_to_nobody(server: Server, app: App) -> None:
    """As with sessions: a header may be a secret, and whoever may read need not know it."""
    servers = {"files": {"url": "https://files.example", "headers": {"Authorization": "Bearer not-for-all"}}}
    made = app.http.post("/schedules", json={**YEARLY, "session": {"mcp_servers": servers, "title": "a"}})
    one = f"/schedules/{made.json()['schedule']['schedule_id']}"
    reader = server.app(app.name, scopes=["read"])
    shown = [
        made,
        reader.http.get(one),
        reader.http.get("/schedules"),
        app.http.patch(one, json={"title": "b"}),
    ]
    assert [reply.status_code for reply in shown] == [200] * 4
    assert not [reply.text for reply in shown if "not-for-all" in reply.text]
    assert reader.http.get(one).json()["schedule"]["session"] == {"mcp_servers": ["files"], "title": "a"}
