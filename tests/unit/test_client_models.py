"""What the SDK hands out is a model of the wire: typed, read like the dict of old, open for newer servers."""

import json
from enum import StrEnum
from typing import Any, get_args

import pytest

from clawdforge import Forge
from clawdforge.client import models
from clawdforge.client.models import SessionState
from clawdforge.wire import session, turn
from tests.unit.client_stub import Answer, Asked, serving

ROW: dict[str, Any] = {
    "session_id": "s1",
    "agent": "claude",
    "title": "T",
    "closed_at": None,
    "meta": {"a": 1},
    "permission_mode": "ask",
    "from_a_newer_server": {"deep": [1]},
}


def state_of(row: dict[str, Any]) -> SessionState:
    def script(_: Asked) -> Answer:
        return Answer(row)

    with serving(script) as stub, Forge(stub.url, "t") as forge:
        return forge.get_session("s1")


def test_a_state_has_attributes_and_reads_like_the_dict_that_was_sent() -> None:
    """S1-50, S1-60."""
    state = state_of(ROW)
    assert (state.title, state.closed_at, state.permission_mode) == ("T", None, models.PermissionMode.ASK)
    assert (state["title"], state["closed_at"], state["permission_mode"]) == ("T", None, "ask")
    assert state == ROW
    assert state != {**ROW, "title": "another"}
    assert dict(state) == {**state} == ROW
    assert set(state) == set(ROW)
    assert len(state) == len(ROW)
    assert json.loads(json.dumps(dict(state))) == ROW
    assert state.get("from_a_newer_server") == {"deep": [1]}
    assert "title" in state
    assert state.get("nothing", 7) == 7
    with pytest.raises(KeyError, match="nothing"):
        state["nothing"]


def test_what_an_older_server_does_not_send_is_a_default_and_no_key() -> None:
    """S1-14, S1-63."""
    state = state_of({"session_id": "s1"})
    assert (state.title, state.live, state.labels, state.meta) == ("", True, [], None)
    assert list(state) == ["session_id"]
    assert state.get("title") is None
    assert "live" not in state


def test_a_word_that_only_a_newer_server_knows_is_kept_as_text() -> None:
    new = {"permission_mode": "ask_twice", "on_interrupt": "ponder", "retention": "ttl", "state": "paused"}
    state = state_of({"session_id": "s1", **new})
    assert {name: state[name] for name in new} == new
    assert (type(state.permission_mode), type(state.retention)) == (str, models.Retention)


def test_every_method_that_tells_of_a_session_tells_it_the_same_way() -> None:
    def script(asked: Asked) -> Answer:
        page = {"ok": True, "sessions": [ROW], "count": 1}
        return Answer(page if asked.line == "GET /sessions" else {**ROW, "ok": True})

    with serving(script) as stub, Forge(stub.url, "t") as forge:
        handle = forge.create_session()
        assert handle.info == {**ROW, "ok": True}
        states = [handle.state(), handle.rename("T"), handle.reopen(), handle.patch(pinned=True)]
        states += [*forge.list_sessions(), forge.get_session("s1")]
        fork = handle.fork()
    assert (fork.forge, fork.session_id, type(fork)) == (forge, "s1", type(handle))
    assert all(isinstance(state, SessionState) for state in states)
    assert {(state.title, state["title"]) for state in states} == {("T", "T")}


@pytest.mark.parametrize(
    ("words", "enum"),
    [
        (session.PermissionModeWord, session.PermissionMode),
        (session.OnInterruptWord, session.OnInterrupt),
        (session.RetentionWord, session.Retention),
        (turn.IfBusyWord, turn.IfBusy),
        (turn.DecisionWord, turn.Decision),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_an_argument_may_be_the_enum_or_its_words(words: Any, enum: type[StrEnum]) -> None:
    kinds = get_args(words)
    assert enum in kinds
    (literal,) = [kind for kind in kinds if kind is not enum]
    assert set(get_args(literal)) == {member.value for member in enum}


def test_an_enum_is_sent_as_its_word() -> None:
    def script(_: Asked) -> Answer:
        return Answer(ROW)

    with serving(script) as stub, Forge(stub.url, "t") as forge:
        forge.create_session(permission_mode=models.PermissionMode.ASK, retention="keep")
        assert stub.asked[0].json == {"permission_mode": "ask", "retention": "keep"}
