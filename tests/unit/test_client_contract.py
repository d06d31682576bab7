"""The SDK's contract over real HTTP, against a stub: requests to the letter, answers read tolerantly."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest

import clawdforge
import clawdforge.client.errors
from clawdforge import Forge, ForgeAPIError, ForgeError, Session, TurnResult
from clawdforge.client.errors import ForgeConnectionError, SessionNotFound
from tests.unit.client_stub import DROP, Answer, Asked, serving

CREATED = {
    "ok": True,
    "session_id": "sess_abc",
    "agent": "claude",
    "created_at": 1_700_000_000,
    "cwd": "/tmp/x",
}
CLOSED = {"ok": True, "session_id": "sess_abc", "already_closed": False}
TURN = {
    "ok": True,
    "session_id": "sess_abc",
    "turn_index": 1,
    "stop_reason": "end_turn",
    "duration_ms": 42,
    "events": [
        {"type": "thinking", "content": "hm"},
        {"type": "text", "content": "Hel"},
        {"type": "tool_call", "name": "read", "args": {}, "result": {}},
        {"type": "text", "content": "lo"},
    ],
}
NOT_FOUND = Answer({"detail": "session not found"}, 404)
ROW: dict[str, Any] = {
    "session_id": "s1",
    "app_name": "a",
    "agent": "claude",
    "cwd": "/x",
    "created_at": 1,
    "last_turn_at": None,
    "turn_count": 0,
    "closed_at": None,
    "meta": {},
}


REPLIES: dict[str, Any] = {
    "POST /sessions": CREATED,
    "DELETE /sessions/sess_abc": CLOSED,
    "POST /sessions/sess_abc/turn": TURN,
    "GET /sessions/sess_abc": {**ROW, "ok": True, "session_id": "sess_abc", "live": True},
    "GET /sessions": {"ok": True, "sessions": [ROW, {**ROW, "session_id": "s2"}], "count": 2},
    "POST /run": {"ok": True, "result": {"hello": "world"}, "duration_ms": 7, "stop_reason": "end_turn"},
}


def usual(asked: Asked) -> Answer:
    return Answer(REPLIES[asked.line]) if asked.line in REPLIES else NOT_FOUND


def forge(url: str) -> Forge:
    return Forge(base_url=url, token="cf_secret", default_timeout_secs=10)


def test_the_package_exports_its_names_and_its_version() -> None:
    """S1-01."""
    assert {"Forge", "ForgeAPIError", "Session", "TurnResult"} <= set(clawdforge.__all__)
    for name in clawdforge.__all__:
        assert getattr(clawdforge, name) is not None
    assert sorted(clawdforge.__all__) == clawdforge.__all__
    with pytest.raises(AttributeError, match="Nonsense"):
        getattr(clawdforge, "Nonsense")  # noqa: B009 - a checker knows that it is not there


def test_every_failure_can_be_caught_by_a_name_of_the_package() -> None:
    def walk(kind: type[ForgeError]) -> Iterator[str]:
        yield kind.__name__
        for one in kind.__subclasses__():
            if one.__module__.startswith(("clawdforge.wire.", "clawdforge.client.")):
                yield from walk(one)

    for module in (clawdforge, clawdforge.client, clawdforge.client.errors):
        assert set(walk(ForgeError)) <= set(module.__all__), module.__name__


def test_the_block_creates_and_closes_and_nothing_else() -> None:
    """S1-20, S1-21."""
    with serving(usual) as stub, forge(stub.url) as client:
        with client.session(agent="claude") as session:
            assert isinstance(session, Session)
            assert (session.session_id, session.agent, session.closed) == ("sess_abc", "claude", False)
        assert session.closed
        assert stub.lines == ["POST /sessions", "DELETE /sessions/sess_abc"]


def test_create_sends_agent_and_meta_and_the_token() -> None:
    """S1-10, S1-22, S1-23."""
    with serving(usual) as stub, forge(stub.url) as client:
        with client.session(agent="codex", meta={"ticket": 7}):
            pass
        with client.session():
            pass
        assert stub.asked[0].json == {"agent": "codex", "meta": {"ticket": 7}}
        assert stub.asked[2].json == {}
        assert {asked.headers["authorization"] for asked in stub.asked} == {"Bearer cf_secret"}
        assert "cf_secret" not in repr(client)


def test_the_block_closes_on_an_exception_and_lets_it_out() -> None:
    """S1-25."""
    with serving(usual) as stub, forge(stub.url) as client:
        with pytest.raises(RuntimeError, match="mine"), client.session() as session:
            raise RuntimeError("mine")
        assert session.closed
        assert stub.lines[-1] == "DELETE /sessions/sess_abc"


@pytest.mark.parametrize("refusal", [Answer({"detail": "no"}, 500), DROP])
def test_a_close_that_fails_never_hides_the_blocks_own_exception(refusal: Answer) -> None:
    """S1-25, S1-72."""

    def script(asked: Asked) -> Answer:
        return refusal if asked.method == "DELETE" else usual(asked)

    with serving(script) as stub, forge(stub.url) as patient:
        client = patient.with_options(retries=0)
        with pytest.raises(RuntimeError, match="mine") as caught, client.session():
            raise RuntimeError("mine")
        assert "could not be closed" in caught.value.__notes__[0]
        with pytest.raises((ForgeAPIError, ForgeConnectionError)), client.session():
            pass


def test_close_is_idempotent_and_a_session_that_is_gone_counts_as_closed() -> None:
    """S1-30, S1-31, S1-72."""
    with serving(usual) as stub, forge(stub.url) as client:
        session = client.create_session(agent="claude")
        assert not session.closed
        for _ in range(3):
            session.close()
            assert session.closed
        assert stub.lines == ["POST /sessions", "DELETE /sessions/sess_abc"]
        with client.attach("gone") as gone:
            pass
        assert gone.closed


def test_a_turn_goes_round() -> None:
    """S1-40, S1-41, S1-44, S1-81."""
    with serving(usual) as stub, forge(stub.url) as client, client.session() as session:
        result = session.turn("hi", files=["ff_xyz"], timeout_secs=30)
        assert stub.asked[-1].json == {"prompt": "hi", "files": ["ff_xyz"], "timeout_secs": 30}
        assert isinstance(result, TurnResult)
        assert (result.ok, result.session_id, result.turn_index) == (True, "sess_abc", 1)
        assert (result.stop_reason, result.duration_ms) == ("end_turn", 42)
        assert result.events == TURN["events"]
        assert result.text() == "Hello"
        assert result.thinking() == "hm"
        session.turn("again")
        assert stub.asked[-1].json == {"prompt": "again"}


def test_an_empty_prompt_or_id_is_refused_without_a_request() -> None:
    """S1-43, S1-61; the block still closes."""
    with serving(usual) as stub, forge(stub.url) as client:
        with client.session() as session:
            for refused in (session.turn, session.submit):
                with pytest.raises(ValueError, match="empty"):
                    refused("")
            with pytest.raises(ValueError, match="empty"), session.stream(""):
                pass
        for call in (client.get_session, client.attach, client.run, client.search):
            with pytest.raises(ValueError, match="empty"):
                call("")
        assert stub.lines == ["POST /sessions", "DELETE /sessions/sess_abc"]


def test_list_get_and_state() -> None:
    """S1-50, S1-51, S1-60, S1-62."""
    with serving(usual) as stub, forge(stub.url) as client:
        assert client.list_sessions() == [ROW, {**ROW, "session_id": "s2"}]
        assert stub.asked[-1].query == {}
        client.list_sessions(include_closed=False)
        assert stub.asked[-1].query == {"include_closed": ["false"]}
        state = client.get_session("sess_abc")
        assert state["live"] is True
        assert client.attach("sess_abc").state() == state


def test_errors_carry_status_code_and_body_and_the_block_still_closes() -> None:
    """S1-70, S1-71."""

    def script(asked: Asked) -> Answer:
        if asked.line.endswith("/turn"):
            return Answer(
                {"ok": False, "error": "gone", "detail": "gone", "code": "session_not_found"},
                404,
                {"X-Request-Id": "req-9"},
            )
        return usual(asked)

    with serving(script) as stub, forge(stub.url) as client:
        with pytest.raises(ForgeAPIError) as plain:
            client.get_session("unknown")
        assert (plain.value.status_code, plain.value.message) == (404, "session not found")
        with pytest.raises(SessionNotFound) as coded, client.session() as session:
            session.turn("hi")
        assert (session.closed, coded.value.status_code) == (True, 404)
        assert stub.lines[-1] == "DELETE /sessions/sess_abc"
        assert coded.value.request_id == "req-9"
        assert coded.value.code == "session_not_found"
        assert "req-9" in str(coded.value)


def test_run_keeps_its_first_shape() -> None:
    """S1-90."""
    with serving(usual) as stub, forge(stub.url) as client:
        answer = client.run(prompt="hi", model="sonnet")
        assert (answer.ok, answer.result, answer.duration_ms) == (True, {"hello": "world"}, 7)
        assert stub.asked[-1].json == {"prompt": "hi", "model": "sonnet"}


def test_a_turn_result_is_a_dataclass_that_takes_junk() -> None:
    """S1-80, S1-82, S1-83."""
    assert dataclasses.is_dataclass(TurnResult)
    odd = [{"type": "text"}, "junk", None, {"type": "text", "content": 5}, {"type": "text", "content": "ok"}]
    assert TurnResult.from_response({"events": odd}).text() == "ok"
    assert TurnResult.from_response({"events": [{"type": "plan"}]}).text() == ""
    assert TurnResult.from_response({}).events == []
    assert TurnResult.from_response({"events": None, "turn_index": "x", "new": 1}).body["new"] == 1
