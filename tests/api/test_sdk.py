"""The SDK against a real server: the contract, streams, queues, permissions, tokens."""

import concurrent.futures
from collections.abc import Iterator

import pytest

from clawdforge import (
    AgentFailed,
    AsyncForge,
    Forge,
    ForgeAPIError,
    KeyReused,
    SessionBusy,
    SessionClosed,
    SessionNotFound,
    TurnResult,
    TurnTimedOut,
    Unauthenticated,
    UnknownAgent,
)
from clawdforge.client.models import DecisionWord, Permission
from tests.api.harness import ADMIN_TOKEN, App, Server, until

pytestmark = pytest.mark.on_both

ASK = "ask write a file"
Answer = DecisionWord | bool
FIELDS = {"session_id", "agent", "cwd", "created_at", "last_turn_at", "turn_count", "closed_at", "meta"}


@pytest.fixture
def forge(server: Server, app: App) -> Iterator[Forge]:
    with Forge(base_url=server.url, token=app.token, default_timeout_secs=60) as client:
        yield client


def test_a_session_from_first_to_last(forge: Forge, app: App) -> None:
    """S1-16, S1-21, S1-41, S1-51, S1-52, S1-54, S1-60, S1-62, S1-63, X-01."""
    with forge.session(agent="claude", meta={"ticket": 7}) as session:
        assert (session.agent, session.closed) == ("claude", False)
        before = session.state()
        assert (before["turn_count"], before["last_turn_at"], before["live"]) == (0, None, True)
        result = session.turn("think hm\ntool read\necho hello")
        assert isinstance(result, TurnResult)
        assert (result.ok, result.turn_index, result.stop_reason) == (True, 1, "end_turn")
        assert (result.text(), result.thinking()) == ("hello", "hm")
        assert result.events[-1]["type"] == "response"
        called = next(event for event in result.events if event["type"] == "tool_call")
        assert (called["name"], called["args"]) == ("read", {"name": "read"})
        assert session.turn("chunks 3").turn_index == 2
        state = session.state()
        assert state == forge.get_session(session.session_id)
        assert (state["turn_count"], state["meta"], state["app_name"]) == (2, {"ticket": 7}, app.name)
        assert FIELDS | {"ok", "live"} <= state.keys()
    assert session.closed
    rows = forge.list_sessions()
    assert [row["session_id"] for row in rows] == [session.session_id]
    assert rows[0]["closed_at"] is not None
    assert FIELDS | {"app_name"} <= rows[0].keys()
    assert forge.list_sessions(include_closed=False) == []
    with pytest.raises(SessionClosed) as closed:
        session.turn("echo late")
    assert closed.value.status_code == 410
    session.reopen()
    assert session.turn("echo back").text() == "back"
    session.close()


def test_another_model_takes_no_memory_away(forge: Forge) -> None:
    with forge.session() as session:
        session.turn("echo the blue door")
        assert session.patch(model="m1").context == 1
        assert session.turn("recall").text() == '["echo the blue door"]', "in its own memory"
        assert session.patch(model="m2", fresh_context=True).context == 2
        session.turn("echo on")
        assert "the blue door" in session.turn("recall all").text(), "it was told"


def test_a_session_that_others_closed_or_deleted_can_still_be_closed(forge: Forge) -> None:
    """S0-63, S1-72."""
    with forge.session() as session:
        forge.attach(session.session_id).close()
    assert session.closed
    with forge.session() as session:
        forge.attach(session.session_id).purge()
    assert session.closed


def test_errors_of_the_server_have_their_class(forge: Forge, server: Server) -> None:
    """S1-70."""
    with pytest.raises(SessionNotFound) as unknown:
        forge.get_session("nonexistent")
    assert unknown.value.status_code == 404
    assert unknown.value.request_id
    with pytest.raises(UnknownAgent):
        forge.create_session(agent="nobody")
    with forge.session() as session:
        with pytest.raises(AgentFailed, match="boom") as failed:
            session.turn("error boom")
        assert failed.value.status_code == 502
        with pytest.raises(TurnTimedOut):
            session.turn("sleep 30", timeout_secs=0.3)
        session.turn("echo a", idempotency_key="k")
        assert session.turn("echo a", idempotency_key="k").turn_index == 3
        with pytest.raises(KeyReused):
            session.turn("echo b", idempotency_key="k")
        assert session.turn("echo fine").text() == "fine"
    with Forge(server.url, "cf_wrong") as stranger, pytest.raises(Unauthenticated):
        stranger.list_sessions()


def test_a_stream_gives_exactly_the_turns_events(forge: Forge) -> None:
    with forge.session() as session:
        session.turn("echo before")
        with session.stream("chunks 20 8 5") as stream:
            seen = list(stream)
        log = [event for event in session.events() if event.turn == 2]
        assert seen == log
        assert [seen[0].type, seen[-1].type] == ["turn.queued", "turn.ended"]
        result = stream.result()
        assert result.text() == "".join(event.text for event in seen if event.type == "text")
        assert (result.ok, result.outcome, result.stop_reason) == (True, "completed", "end_turn")
        with session.stream("error boom") as stream:
            failed = stream.result()
        assert (failed.ok, failed.outcome, failed.code) == (False, "failed", "agent_failed")
        with session.watch(2) as again:
            assert list(again) == log


def test_a_stream_can_be_cancelled_and_keeps_what_was_said(forge: Forge) -> None:
    with forge.session() as session, session.stream("echo said\nsleep 30\necho never") as stream:
        for event in stream:
            if event.type == "text":
                stream.cancel()
        result = stream.result()
        assert (result.outcome, result.text()) == ("cancelled", "said")


def test_a_stream_cancels_its_own_turn_and_no_other(forge: Forge) -> None:
    with forge.session() as session:
        running = session.submit("sleep 30")
        with session.stream("echo two") as stream:
            assert next(stream).type == "turn.queued"
            assert stream.cancel().cancelled == 1
            assert stream.result().outcome == "cancelled"
        assert session.state().running_turn == running.turn_index
        session.cancel()


def test_the_queue(forge: Forge) -> None:
    with forge.session() as session:
        first = session.submit("sleep 30")
        second = session.submit("echo two")
        with pytest.raises(SessionBusy):
            session.turn("echo three", if_busy="reject")
        session.withdraw(second.turn_index)
        assert session.cancel().cancelled == 1
        with session.watch(first.turn_index) as stream:
            assert stream.result().outcome == "cancelled"
        turns = list(session.turns())
        assert [(turn.turn_index, turn.outcome) for turn in turns] == [(1, "cancelled"), (2, "cancelled")]


def test_events_and_messages_are_paged(forge: Forge) -> None:
    with forge.session() as session:
        for number in range(5):
            session.turn(f"echo {number}")
        head = session.state()["head"]
        assert [event.seq for event in session.events(page_size=3)] == list(range(1, head + 1))
        assert [event.seq for event in session.events(after=head - 2)] == [head - 1, head]
        live = session.follow()
        assert [next(live).seq for _ in range(head)] == list(range(1, head + 1))
        session.rename("another name")
        assert next(live).type == "session.changed"
        said = [(message.role, message.content) for message in session.messages()]
        expected = [pair for n in range(5) for pair in (("user", f"echo {n}"), ("assistant", str(n)))]
        assert said == expected
        assert session.state()["title"] == "another name"


def test_sessions_are_paged_and_filtered(forge: Forge) -> None:
    made = [forge.create_session(title=f"t{n}", labels=["odd"] if n % 2 else None) for n in range(5)]
    ids = {session.session_id for session in made}
    assert {row["session_id"] for row in forge.sessions(page_size=2)} == ids
    odd = {session.session_id for session in made[1::2]}
    assert {row["session_id"] for row in forge.sessions(label="odd")} == odd


def test_permissions_are_asked_and_decided(forge: Forge) -> None:
    with forge.session(permission_mode="ask") as session, session.stream(ASK) as stream:
        until(session.permissions, "a request")
        for request in session.permissions():
            decided = session.decide(request.permission_id, "allow_once")
            assert decided.state == "decided"
        assert stream.result().outcome == "completed"
        assert session.permissions() == []
        assert len(session.permissions(state="decided")) == 1


@pytest.mark.parametrize(
    ("answer", "decision"), [(True, "allow_once"), (False, "reject"), ("allow_always", "allow_always")]
)
def test_a_function_decides(forge: Forge, answer: Answer, decision: str) -> None:
    asked: list[Permission] = []

    def decide(request: Permission) -> Answer:
        asked.append(request)
        return answer

    with forge.session(permission_mode="ask") as session:
        assert session.turn(ASK, on_permission=decide).ok
        [request] = session.permissions(state="decided")
        assert (asked[0].permission_id, request.decision) == (request.permission_id, decision)


async def test_a_function_that_awaits_decides_and_may_leave_it_to_others(server: Server, app: App) -> None:
    async with (
        AsyncForge(server.url, app.token, timeout=60, max_retries=0) as forge,
        forge.session(permission_mode="ask") as session,
    ):

        async def decide(request: Permission) -> bool:
            state = await session.state()
            return state.pending_permissions == 1 and request.state == "pending"

        async with session.stream(ASK, on_permission=decide) as stream:
            assert (await stream.result()).ok
        async with session.stream(ASK, on_permission=lambda _: None) as stream:
            async for event in stream:
                if event.type == "permission.requested":
                    [request] = await session.permissions()
                    await session.decide(request.permission_id, "reject")
        again = await session.retry_turn("echo instead")
        assert (again.text(), again.turn_index) == ("instead", 3)
        assert (await session.retry_turn()).text() == "instead"
        await session.compact()  # nothing runs any more


def test_a_turn_that_was_read_as_it_ran_fails_like_another(forge: Forge) -> None:
    with forge.session() as session:
        for prompt, kind, limit in (("sleep 30", TurnTimedOut, 0.3), ("error boom", AgentFailed, None)):
            with pytest.raises(kind) as plain:
                session.turn(prompt, timeout=limit)
            with pytest.raises(kind) as read:
                session.turn(prompt, timeout=limit, on_permission=lambda _: True)
            assert (read.value.code, read.value.status_code) == (plain.value.code, plain.value.status_code)
        with pytest.raises(AgentFailed):
            session.retry_turn("error boom")


def test_the_operator_makes_and_ends_tokens(server: Server) -> None:
    with Forge(server.url, ADMIN_TOKEN) as operator:
        made = operator.admin.create_token("sdk-app", note="for a test")
        assert [token.token_id for token in operator.admin.tokens("sdk-app")] == [made.token_id]
        with Forge(server.url, made.token) as client:
            assert client.list_sessions() == []
            operator.admin.revoke_token(made.token_id)
            with pytest.raises(Unauthenticated):
                client.list_sessions()
        assert operator.healthz().ok
        assert operator.readyz().ok
        assert operator.raw.get("/healthz").json()["ok"] is True


def test_one_client_under_sixteen_threads(forge: Forge) -> None:
    def work(number: int) -> list[str]:
        with forge.session() as session:
            return [session.turn(f"echo {number}.{turn}").text() for turn in range(3)]

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        said = list(pool.map(work, range(16)))
    assert said == [[f"{number}.{turn}" for turn in range(3)] for number in range(16)]


async def test_the_awaiting_client(server: Server, app: App) -> None:
    """X-28."""
    async with AsyncForge(server.url, app.token) as forge:
        async with forge.session(agent="claude") as session:
            assert (await session.turn("echo hello")).text() == "hello"
            async with session.stream("chunks 5") as stream:
                seen = [event async for event in stream]
                result = await stream.result()
            assert [event.seq for event in seen] == [e.seq async for e in session.events() if e.turn == 2]
            assert result.text() == "".join(event.text for event in seen if event.type == "text")
        rows = await forge.list_sessions()
        assert [row["session_id"] for row in rows] == [session.session_id]
        with pytest.raises(ForgeAPIError):
            await session.turn("echo late")
