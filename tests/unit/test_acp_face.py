"""What an editor's prompt becomes, and what events, messages and endings become for an editor."""

import base64
from typing import Any

import pytest

from clawdforge.client.models import AgentInfo, SessionState
from clawdforge.faces.acp import settings, updates
from clawdforge.faces.acp.endings import answer_of
from clawdforge.faces.acp.mcp import MAX_NAMES, describe_missing, read_servers
from clawdforge.faces.acp.prompts import MAX_FILES, read_prompt
from clawdforge.jsonrpc.rpc import RpcError
from clawdforge.wire.base import Json
from clawdforge.wire.event import Event
from clawdforge.wire.message import Message

TEXT = {"type": "text", "text": "look"}
PICTURE = {"type": "image", "mimeType": "image/png", "data": base64.b64encode(b"png").decode()}


def resource(**more: Any) -> Json:
    return {"type": "resource", "resource": {"uri": "file:///srv/a%20b.py", **more}}


@pytest.mark.parametrize(
    ("blocks", "text", "files"),
    [
        ([TEXT], "look", []),
        ([TEXT, TEXT], "look\n\nlook", []),
        (
            [TEXT, {"type": "resource_link", "uri": "file:///a", "name": "a"}, TEXT],
            "look[@a](file:///a)look",
            [],
        ),
        ([TEXT, {"type": "resource_link", "uri": "file:///a"}], "look@file:///a", []),
        (
            [TEXT, resource(text="x = 1")],
            'look[@a b.py](file:///srv/a%20b.py)\n<context ref="file:///srv/a%20b.py">\nx = 1\n</context>',
            [],
        ),
        ([resource(blob="AAE=")], "[@a b.py](file:///srv/a%20b.py)", [("a b.py", b"\0\1")]),
        ([PICTURE], "See the attached files.", [("file1.png", b"png")]),
    ],
)
def test_a_prompt_is_one_text_and_files(
    blocks: list[Json], text: str, files: list[tuple[str, bytes]]
) -> None:
    found = read_prompt(blocks)
    assert found.text == text
    assert [(file.name, file.data) for file in found.files] == files


@pytest.mark.parametrize(
    "blocks",
    [
        *(None, "text", [], [1], [{}], [{"type": "text"}], [{"type": "text", "text": ""}]),
        *([{"type": "audio", "data": ""}], [{**PICTURE, "data": "no base64"}], [{"type": "resource"}]),
        *([resource()], [PICTURE] * (MAX_FILES + 1)),
    ],
)
def test_a_prompt_that_cannot_be_passed_on_is_refused(blocks: Any) -> None:
    with pytest.raises(RpcError) as refused:
        read_prompt(blocks)
    assert refused.value.code == -32602


def event(kind: str, **fields: Any) -> Event:
    return Event.model_validate({"seq": 1, "ts": "2026-01-01T00:00:00Z", "turn": 1, "type": kind, **fields})


def test_what_an_agent_said_is_passed_on_as_it_said_it() -> None:
    words = updates.of_event(event("text", agent_session_id="a", content="Hello"))
    assert words == {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Hello"}}
    update = {
        "sessionUpdate": "tool_call",
        "toolCallId": "t",
        "content": [{"type": "terminal", "terminalId": "x"}, {"type": "content", "content": {}}],
    }
    call = updates.of_event(
        event("tool_call", agent_session_id="a", name="Read", args={"p": 1}, update=update)
    )
    assert call is not None
    assert (call["title"], call["rawInput"]) == ("Read", {"p": 1})
    assert call["content"] == [{"type": "content", "content": {}}], "a terminal of the server was passed on"


@pytest.mark.parametrize("kind", ["user", "mode", "config", "info", "response", "turn.started", "unknown"])
def test_what_is_not_for_an_editor_is_kept_back(kind: str) -> None:
    assert updates.of_event(event(kind, agent_session_id="a", content="x", update={})) is None


def test_a_long_message_is_replayed_in_pieces_under_one_name() -> None:
    text = "x" * (updates.CHUNK_CHARS + 1)
    message = Message(
        seq=7,
        role="assistant",
        content=text,
        ts="",
        thinking="hm",
        tool_calls=[{"toolCallId": "t", "status": "failed"}, {}],
        plan=[{"content": "p"}],
    )
    found = list(updates.of_message(message))
    kinds = [update["sessionUpdate"] for update in found]
    assert kinds == ["agent_thought_chunk", "tool_call", "tool_call", "plan", *["agent_message_chunk"] * 2]
    assert "".join(update["content"]["text"] for update in found[-2:]) == text
    assert {update["messageId"] for update in found[-2:]} == {"m7"}
    assert [(call["toolCallId"], call["status"]) for call in found[1:3]] == [
        ("t", "failed"),
        ("m7c1", "completed"),
    ]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"outcome": "completed", "stop_reason": "end_turn"}, "end_turn"),
        ({"outcome": "completed", "stop_reason": "max_tokens"}, "max_tokens"),
        ({"outcome": "completed", "stop_reason": "of its own"}, "end_turn"),
        ({"outcome": "cancelled", "stop_reason": "end_turn"}, "cancelled"),
    ],
)
def test_a_turn_that_came_to_its_end_has_a_stop_reason(fields: Json, reason: str) -> None:
    assert answer_of(event("turn.ended", **fields)) == {"stopReason": reason}


@pytest.mark.parametrize("outcome", ["failed", "timed_out", "interrupted", "of a newer server", None])
def test_a_turn_that_was_cut_short_never_reads_as_ended(outcome: str | None) -> None:
    with pytest.raises(RpcError):
        answer_of(event("turn.ended", outcome=outcome, stop_reason="end_turn"))
    with pytest.raises(RpcError, match="max_tokens"):
        answer_of(event("turn.ended", outcome="cancelled", stopped_by="max_tokens"))


def test_reported_tokens_are_told_and_estimated_ones_are_not() -> None:
    usage = {"input_tokens": 3, "output_tokens": 2, "cached_tokens": 1, "total_tokens": 6}
    told = answer_of(event("turn.ended", outcome="completed", usage=usage))["usage"]
    assert told == {"inputTokens": 3, "outputTokens": 2, "cachedReadTokens": 1, "totalTokens": 6}
    assert "usage" not in answer_of(
        event("turn.ended", outcome="completed", usage={**usage, "estimated": True})
    )


def test_what_can_be_chosen_is_what_is_there() -> None:
    state = SessionState(session_id="s", agent="old", permission_mode="ask", plan_mode=True)
    agents = [
        AgentInfo(name="claude", driver="acp", installed=True),
        AgentInfo(name="gone", driver="acp", installed=False),
    ]
    described = settings.describe(state, agents)
    assert described["modes"]["currentModeId"] == "plan"
    agent, model = described["configOptions"]
    assert [option["value"] for option in agent["options"]] == ["claude", "old"]
    assert (model["currentValue"], model["category"]) == ("default", "model")
    assert settings.read_option({"configId": "model", "value": "default"}, state) == {}
    assert settings.read_mode({"modeId": "deny_all"}) == {"permission_mode": "deny_all", "plan_mode": False}
    for wrong in ({"configId": "x", "value": "y"}, {"configId": "agent", "value": 1}):
        with pytest.raises(RpcError):
            settings.read_option(wrong, state)


PROGRAM = {"name": "a", "command": "/bin/a", "args": ["-x"], "env": [{"name": "K", "value": "v"}]}
ADDRESS = {"type": "http", "name": "b", "url": "http://b", "headers": [{"name": "H", "value": "w"}]}


def test_mcp_servers_are_passed_on_whole_or_refused() -> None:
    assert read_servers({}) == {}
    assert read_servers({"mcpServers": [PROGRAM, ADDRESS]}) == {
        "a": {"command": ["/bin/a", "-x"], "env": {"K": "v"}},
        "b": {"url": "http://b", "headers": {"H": "w"}},
    }
    held = read_servers({"mcpServers": [{**PROGRAM, "env": [{"name": "K", "value": "${HOME}"}]}]})
    assert held["a"]["env"] == {"K": "$${HOME}"}, "a value names a secret of the app"
    for wrong in ({}, {**PROGRAM, "name": 1}, {**PROGRAM, "type": "sse"}, {**PROGRAM, "args": "x"}):
        with pytest.raises(RpcError):
            read_servers({"mcpServers": [wrong]})
    for more in ("x", [1], [PROGRAM, PROGRAM], [{**PROGRAM, "env": {"K": "v"}}], [{**PROGRAM, "env": [{}]}]):
        with pytest.raises(RpcError):
            read_servers({"mcpServers": more})


def test_an_old_session_is_opened_without_the_servers_that_it_does_not_have() -> None:
    assert describe_missing({"mcpServers": [PROGRAM]}, ["a", "c"]) == ""
    assert describe_missing({}, ["a"]) == ""
    assert "not have them: b. A new" in describe_missing({"mcpServers": [PROGRAM, ADDRESS]}, ["a"])
    many = [{"name": f"s{number:02}", "type": "sse"} for number in range(MAX_NAMES + 2)]
    assert "s15 and 2 more. A new" in describe_missing({"mcpServers": many}, [])
    with pytest.raises(RpcError):
        describe_missing({"mcpServers": [{}]}, [])
