"""Budgets over HTTP: refused, asked, stopped and warned; exact when many come at once, and after a kill."""

import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clawdforge import AsyncForge, Forge
from clawdforge.client.errors import BudgetExceeded
from tests.api.harness import ADMIN_TOKEN, App, Server, until

PROGRAM = f"""#!{sys.executable} -IS
import json, sys
usage = {{"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 5}}
told = {{"total_cost_usd": 0.25, "usage": usage}} if "tell" in sys.stdin.read() else {{}}
print(json.dumps({{"type": "result", "is_error": False, "result": "done", **told}}))
"""


def bound(server: Server, app: App, **body: Any) -> dict[str, Any]:
    reply = server.admin().put("/admin/budgets", json={"app_name": app.name, **body})
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()["budget"]
    return found


def budget(app: App) -> dict[str, Any]:
    (found,) = app.http.get("/budgets").json()["budgets"]
    return dict(found)


def submit(app: App, session_id: str, prompt: str, **body: Any) -> int:
    return app.http.post(f"/sessions/{session_id}/turns", json={"prompt": prompt, **body}).status_code


def turns(app: App, session_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = app.http.get(f"/sessions/{session_id}/turns").json()["turns"]
    return found


def question(app: App, session_id: str) -> dict[str, Any]:
    def waiting() -> dict[str, Any] | None:
        page = app.http.get(f"/sessions/{session_id}/permissions", params={"state": "pending"}).json()
        return next(iter(page["permissions"]), None)

    return until(waiting, "the question")


def settled(app: App) -> dict[str, Any]:
    """The one budget of an app once no turn holds anything of it."""
    return until(lambda: found if (found := budget(app))["reserved"]["tokens"] == 0 else None, "the end")


def test_a_budget_that_is_used_up_refuses_with_what_to_do(server: Server, app: App) -> None:
    made = bound(server, app, max_tokens=100, period="month")
    assert (made["share_tokens"], made["by_operator"], made["left"]["tokens"]) == (5, True, 100)
    session_id = app.session()
    assert app.turn(session_id, "usage 60 40").status_code == 200
    refused = app.turn(session_id, "echo no")
    assert (refused.status_code, refused.json()["code"]) == (429, "budget_exceeded")
    assert refused.json()["budget_id"] == made["budget_id"]
    assert 0 < int(refused.headers["retry-after"]) <= 31 * 86_400
    assert f"clawdforge budget set --period month --app {app.name} --tokens 200" in refused.json()["error"]
    assert [turn["outcome"] for turn in turns(app, session_id)] == ["completed"]
    found = budget(app)
    assert (found["spent"]["tokens"], found["reserved"]["tokens"], found["left"]["tokens"]) == (100, 0, 0)
    assert app.http.get("/limits").json()["budgets"] == [found]
    bound(server, app, max_tokens=101, period="month")
    assert app.turn(session_id, "usage 1 0").status_code == 200
    assert app.turn(session_id, "echo no").status_code == 429


def test_many_at_once_get_in_as_often_as_there_is_room(server: Server, app: App) -> None:
    bound(server, app, max_tokens=10, share_tokens=2)
    sessions = [app.session() for _ in range(10)]
    answers: Counter[int] = Counter()
    barrier = threading.Barrier(len(sessions))

    def send(session_id: str) -> None:
        barrier.wait()
        for _ in range(3):
            answers[submit(app, session_id, "usage 1 1\necho a")] += 1

    threads = [threading.Thread(target=send, args=(one,)) for one in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = settled(app)
    assert set(answers) <= {202, 429}
    assert answers[202] == 5
    assert (found["spent"]["tokens"], found["left"]["tokens"]) == (10, 0)


def test_every_way_to_a_turn_is_counted(server: Server, app: App) -> None:
    session_id = app.session()
    app.turn(session_id, "usage 1 0\necho a")
    bound(server, app, max_tokens=3, share_tokens=1)
    again = app.http.post(f"/sessions/{session_id}/retry", json={"run": True})
    assert again.status_code == 200
    until(lambda: turns(app, session_id)[-1]["state"] == "ended", "the retry")
    assert budget(app)["spent"]["tokens"] == 1
    compact = app.http.post(f"/sessions/{session_id}/compact", json={"prompt": "usage 1 0\necho short"})
    assert compact.status_code == 200, compact.text
    deep = app.http.post(
        f"/api/sessions/{session_id}/messages", json={"content": "usage 1 0\necho b", "run": True}
    )
    assert deep.status_code == 200
    assert settled(app)["spent"]["tokens"] == 3
    for path, body in (
        (f"/sessions/{session_id}/retry", {"prompt": "echo other"}),
        (f"/sessions/{session_id}/compact", {}),
        (f"/api/sessions/{session_id}/messages", {"content": "x", "run": True}),
        ("/api/chat/start", {"session_id": session_id, "message": "x"}),
        ("/run", {"prompt": "x"}),
    ):
        refused = app.http.post(path, json=body)
        assert (refused.status_code, refused.json()["code"]) == (429, "budget_exceeded"), path
    assert len([turn for turn in turns(app, session_id) if turn["state"] != "ended"]) == 0


def test_a_run_counts_what_its_program_tells(start: Callable[..., Server], tmp_path: Path) -> None:
    program = tmp_path / "claude"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    server = start(CLAUDE_BIN=str(program), SANDBOX="off")
    app = server.app()
    bound(server, app, max_cost_usd=1, max_tokens=1000, share_cost_usd=0.5)
    assert app.http.post("/run", json={"prompt": "tell"}).status_code == 200
    found = budget(app)
    assert (found["spent"], found["reserved"]["cost_usd"]) == ({"tokens": 12, "cost_usd": 0.25}, 0)
    assert app.http.post("/run", json={"prompt": "be silent"}).status_code == 200
    assert budget(app)["estimated"]["cost_usd"] == 0.5
    server.stop()
    server.start()
    app = App(app.name, app.token, app.token_id, server.client(app.token))
    assert budget(app)["left"]["cost_usd"] == 0.25


@pytest.mark.parametrize("then", ["refuse", "ask", "stop"])
def test_only_stop_ends_a_running_turn_that_crosses(server: Server, app: App, then: str) -> None:
    bound(server, app, max_cost_usd=0.4, then=then)
    session_id = app.session()
    prompt = "echo words\ncost 0.5\nhang" if then == "stop" else "echo words\ncost 0.5\necho on"
    found = app.turn(session_id, prompt).json()
    wanted = (
        ("cancelled", "stopped_by_limit", "budget") if then == "stop" else ("completed", "end_turn", None)
    )
    assert (found["outcome"], found["stop_reason"], found["stopped_by"]) == wanted
    assert budget(app)["spent"]["cost_usd"] == 0.5
    messages = app.http.get(f"/sessions/{session_id}/messages").json()["messages"]
    assert messages[-1]["content"].startswith("words")
    if then != "ask":
        assert submit(app, session_id, "echo no") == 429


def test_a_person_decides_whether_a_turn_runs(server: Server, app: App) -> None:
    made = bound(server, app, max_tokens=0, then="ask")
    session_id = app.session()
    assert submit(app, session_id, "usage 2 3\necho asked") == 202
    asked = question(app, session_id)
    assert (asked["kind"], asked["turn_index"]) == ("budget", 1)
    assert asked["request"]["budget_ids"] == [made["budget_id"]]
    assert asked["tool"].startswith("run a turn beyond the budget of this app (0 tokens a day) from 20")
    assert turns(app, session_id)[0]["state"] == "waiting"
    at = f"/sessions/{session_id}/permissions"
    app.http.post(f"{at}/{asked['permission_id']}", json={"decision": "allow_once"})
    until(lambda: turns(app, session_id)[0]["outcome"] == "completed", "the turn")
    assert budget(app)["spent"]["tokens"] == 5
    submit(app, session_id, "usage 2 3\necho no")
    asked = question(app, session_id)
    app.http.post(f"{at}/{asked['permission_id']}", json={"decision": "reject"})
    until(lambda: turns(app, session_id)[1]["state"] == "ended", "the end")
    turn = turns(app, session_id)[1]
    assert (turn["outcome"], turn["stopped_by"]) == ("cancelled", "budget")
    assert budget(app)["spent"]["tokens"] == 5, "no agent has seen it"
    submit(app, session_id, "usage 2 3\necho always")
    asked = question(app, session_id)
    app.http.post(f"{at}/{asked['permission_id']}", json={"decision": "allow_always"})
    assert app.turn(session_id, "usage 2 3\necho again").json()["outcome"] == "completed"
    assert budget(app)["spent"]["tokens"] == 15


def test_a_question_is_asked_again_of_nobody_when_the_turn_is_cancelled(server: Server, app: App) -> None:
    bound(server, app, max_tokens=0, then="ask")
    session_id = app.session()
    submit(app, session_id, "echo asked")
    question(app, session_id)
    assert app.http.post(f"/sessions/{session_id}/cancel", json={}).json()["cancelled"] == 1
    assert turns(app, session_id)[0]["outcome"] == "cancelled"
    states = app.http.get(f"/sessions/{session_id}/permissions").json()["permissions"]
    assert [one["state"] for one in states] == ["expired"]
    assert settled(app)["estimated"]["tokens"] == 0


def test_a_warning_is_told_once_in_the_log_the_audit_and_the_metrics(server: Server, app: App) -> None:
    def metric() -> int:
        text = server.admin().get("/metrics").text
        return int(text.split("\nclawdforge_budget_warnings_total ")[1].split()[0])

    before = metric()
    made = bound(server, app, max_tokens=100, warn_at=0.5)
    session_id = app.session()
    for _ in range(3):
        app.turn(session_id, "usage 25 0")
    events = app.http.get(f"/sessions/{session_id}/events").json()["events"]
    (warned,) = [event for event in events if event["type"] == "budget.warned"]
    assert (warned["turn"], warned["tokens"], warned["budget_id"]) == (2, 50, made["budget_id"])
    assert budget(app)["warned"] is True
    entries = (
        server.admin().get("/admin/audit", params={"app_name": app.name, "limit": 1000}).json()["entries"]
    )
    names = [entry["event"] for entry in entries]
    assert (names.count("budget set"), names.count("budget.warned")) == (1, 1)
    assert metric() == before + 1


def test_an_app_bounds_itself_and_cannot_loosen_what_the_operator_set(server: Server, app: App) -> None:
    theirs = bound(server, app, max_tokens=10)
    mine = app.http.put("/budgets", json={"max_tokens": 1_000_000}).json()["budget"]
    assert mine["budget_id"] != theirs["budget_id"]
    assert [one["by_operator"] for one in app.http.get("/budgets").json()["budgets"]] == [True, False]
    session_id = app.session()
    app.turn(session_id, "usage 10 0")
    assert submit(app, session_id, "echo no") == 429, "the operator's is used up"
    refused = app.http.delete(f"/budgets/{theirs['budget_id']}")
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert app.http.delete(f"/budgets/{mine['budget_id']}").status_code == 200
    assert app.http.delete(f"/budgets/{mine['budget_id']}").json()["code"] == "budget_not_found"
    assert server.admin().delete(f"/admin/budgets/{theirs['budget_id']}").status_code == 200
    assert server.admin().delete(f"/admin/budgets/{theirs['budget_id']}").json()["code"] == "budget_not_found"
    assert submit(app, session_id, "echo yes") == 202


def test_a_token_and_a_session_have_budgets_of_their_own(server: Server, app: App, other: App) -> None:
    second = server.app(app.name)
    session_id, beside = app.session(), app.session()
    app.http.put("/budgets", json={"scope": "token", "id": second.token_id, "max_tokens": 0})
    app.http.put("/budgets", json={"scope": "session", "id": beside, "max_tokens": 0})
    assert submit(second, session_id, "echo no") == 429
    assert submit(app, session_id, "echo yes") == 202
    assert submit(app, beside, "echo no") == 429
    for body, code in (
        ({"scope": "token", "id": other.token_id}, "token_not_found"),
        ({"scope": "session", "id": other.session()}, "session_not_found"),
    ):
        assert app.http.put("/budgets", json={**body, "max_tokens": 1}).json()["code"] == code
    app.http.post(f"/sessions/{beside}/purge")
    server.admin().post("/admin/sweep")
    assert [one["scope"] for one in app.http.get("/budgets").json()["budgets"]] == ["token"]


@pytest.mark.parametrize("agent", ["login", "dies", "missing"])
def test_an_agent_that_did_not_start_costs_nothing(server: Server, app: App, agent: str) -> None:
    bound(server, app, max_cost_usd=1, max_tokens=100)
    session_id = app.session(agent=agent)
    assert app.turn(session_id, "echo no").status_code == 502
    found = budget(app)
    assert (found["left"], found["estimated"]["tokens"]) == ({"tokens": 100, "cost_usd": 1.0}, 0)


def test_bodies_that_bound_nothing_are_refused(server: Server, app: App) -> None:
    for body in (
        {},
        {"max_tokens": -1},
        {"max_cost_usd": 1e300},
        {"max_tokens": 1, "warn_at": 0},
        {"max_tokens": 1, "scope": "token"},
        {"max_tokens": 1, "id": "x"},
        {"max_tokens": 1, "then": "panic"},
        {"max_tokens": 1, "period": "year"},
        {"max_tokens": 1, "mistyped": 1},
    ):
        assert app.http.put("/budgets", json=body).status_code == 422, body
    unknown = server.admin().put("/admin/budgets", json={"app_name": "nobody-knows", "max_tokens": 1})
    assert unknown.json()["code"] == "app_not_found"


def test_what_is_held_and_spent_outlives_a_kill(start: Callable[..., Server]) -> None:
    server = start()
    app = server.app()
    bound(server, app, max_tokens=100, share_tokens=40, max_cost_usd=1, share_cost_usd=0.4)
    first, second = app.session(), app.session()
    app.turn(first, "usage 10 0\ncost 0.1")
    submit(app, first, "echo begun\nhang")
    with app.stream(f"/sessions/{first}/events") as stream:
        stream.upto("text")
    submit(app, first, "usage 3 0\ncost 0.2")
    assert submit(app, second, "echo no") == 202, "what is left is less than a share"
    server.process.kill()
    server.process.wait()
    server.stop()
    server.start()
    app = App(app.name, app.token, app.token_id, server.client(app.token))
    until(lambda: [turn["state"] for turn in turns(app, first)] == ["ended"] * 3, "what was queued")
    until(lambda: turns(app, second)[0]["state"] == "ended", "the other")
    found = settled(app)
    counted = found["spent"]["tokens"] + found["estimated"]["tokens"]
    ended = [turn["usage"] for turn in (*turns(app, first), *turns(app, second))]
    assert (ended[0]["total_tokens"], ended[2]["total_tokens"]) == (10, 3)
    assert counted >= sum(usage["total_tokens"] for usage in ended if usage is not None)
    assert found["reserved"] == {"tokens": 0, "cost_usd": 0.0}
    assert found["estimated"]["cost_usd"] >= 0.4, "what was cut off counts as what it held"


def test_there_are_at_most_two_hundred(server: Server, app: App) -> None:
    tokens = [server.app(app.name).token_id for _ in range(67)]
    wanted = [
        {"scope": "token", "id": token, "period": period, "max_tokens": 1}
        for token in tokens
        for period in ("day", "month", "total")
    ]
    answers = [app.http.put("/budgets", json=body).status_code for body in wanted]
    assert (answers[:200], answers[200:]) == ([200] * 200, [429])
    assert app.http.put("/budgets", json=wanted[0]).status_code == 200, "one that is there can be changed"
    bound(server, app, max_tokens=1)


async def test_the_sdk_sets_lists_and_removes(server: Server, app: App) -> None:
    with Forge(server.url, token=ADMIN_TOKEN) as operator:
        operator.admin.set_budget(app.name, max_tokens=5, then="stop")
        assert [one.app_name for one in operator.admin.budgets(app.name)] == [app.name]
        assert app.name in {one.app_name for one in operator.admin.budgets()}
    async with AsyncForge(server.url, token=app.token) as forge:
        made = await forge.set_budget(period="total", max_cost_usd=0.5, share_cost_usd=0.5)
        assert [one.period for one in await forge.budgets()] == ["day", "total"]
        async with forge.session(agent="claude") as session:
            await session.turn("usage 5 0")
            with pytest.raises(BudgetExceeded) as refused:
                await session.turn("echo no")
        assert (refused.value.status_code, refused.value.is_passing) == (429, False)
        await forge.remove_budget(made.budget_id)
    with Forge(server.url, token=ADMIN_TOKEN) as operator:
        (left,) = operator.admin.budgets(app.name)
        operator.admin.remove_budget(left.budget_id)
        assert list(operator.admin.budgets(app.name)) == []
