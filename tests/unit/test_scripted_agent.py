"""The scripted agent over real pipes: its protocol, its language and its memory."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.scripted import Launch, kinds, launching, said, updates


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launch]:
    with launching(tmp_path) as run:
        yield run


def test_a_plain_prompt_is_one_update_and_the_response(launch: Launch) -> None:
    one = launch().open()
    text = "Hello, wörld\n\n  two lines; kept \U0001f30d exactly \n"
    before, answer = one.prompt(text)
    assert kinds(before) == ["agent_message_chunk"]
    assert said(before) == text
    assert answer["result"]["stopReason"] == "end_turn"
    size = (len(text.encode()) + 3) // 4
    assert answer["result"]["usage"]["inputTokens"] == answer["result"]["usage"]["outputTokens"] == size


def test_forty_chunks_are_forty_updates(launch: Launch) -> None:
    before, _ = launch().open().prompt("chunks 40")
    assert kinds(before) == ["agent_message_chunk"] * 40
    assert said(before) == "".join(f"{number} " for number in range(1, 41))


def test_lines_run_in_order_and_text_between_them_is_echoed(launch: Launch) -> None:
    before, _ = (
        launch().open().prompt("think first\necho second\nplain one\nplain two\ntool read\ncount to ten")
    )
    assert kinds(before) == [
        "agent_thought_chunk",
        *["agent_message_chunk"] * 2,
        "tool_call",
        *["tool_call_update"] * 2,
        "agent_message_chunk",
    ]
    assert said(before) == "secondplain one\nplain twocount to ten"
    assert [update.get("status") for update in updates(before)[3:6]] == [
        "pending",
        "in_progress",
        "completed",
    ]
    assert updates(before)[3]["kind"] == "read"


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("plan a | b", ["plan"]),
        ("tools 2 1", ["tool_call", "tool_call_update", "tool_call_update"] * 2),
        ("notice careful", ["notice"]),
        ("other nobody_knows", ["nobody_knows"]),
        ("mode plan", ["current_mode_update"]),
        ("usage-update 5 100", ["usage_update"]),
        ("cost 0.25", ["usage_update"]),
        ("call-usage 5 7", ["agent_thought_chunk"]),
        ('update {"sessionUpdate": "session_info_update", "title": "T"}', ["session_info_update"]),
        ("flood 1000 200", ["agent_message_chunk"] * 1000),
        ("chunks 3 20 1", ["agent_message_chunk"] * 3),
    ],
)
def test_updates_of_every_kind(launch: Launch, script: str, expected: list[str]) -> None:
    before, answer = launch().open().prompt(script)
    assert kinds(before) == expected
    assert answer["result"]["stopReason"] == "end_turn"


@pytest.mark.parametrize(
    ("script", "stop"),
    [("refuse", "refusal"), ("max-tokens", "max_tokens"), ("stop max_turn_requests", "max_turn_requests")],
)
def test_stop_reasons(launch: Launch, script: str, stop: str) -> None:
    assert launch().open().prompt(script)[1]["result"]["stopReason"] == stop


def test_an_error_is_the_answer(launch: Launch) -> None:
    one = launch().open()
    assert one.prompt("error the model is gone")[1]["error"] == {
        "code": -32603,
        "message": "the model is gone",
    }
    assert one.say("still here") == "still here"


def test_it_tells_where_it_is(launch: Launch, tmp_path: Path) -> None:
    one = launch().open()
    assert one.say("cwd") == one.say("home") == str(tmp_path)
    assert one.say("pid") == str(one.process.pid)
    assert one.say("env TAG") == "seen"
    assert set(json.loads(one.say("env"))) >= {"HOME", "PATH", "TAG"}
    assert one.say("write note.txt some text") == "wrote note.txt"
    assert one.say("read note.txt") == "some text"
    assert one.say("read missing.txt").startswith("error: ")


def test_usage_is_told_summed_or_withheld(launch: Launch) -> None:
    told = {"inputTokens": 10, "outputTokens": 20, "cachedReadTokens": 5, "totalTokens": 35}
    assert launch().open().prompt("usage 10 20 5")[1]["result"]["usage"] == told
    summing = launch("--usage-cumulative").open()
    summing.prompt("usage 10 20 5")
    assert summing.prompt("usage 1 1")[1]["result"]["usage"]["totalTokens"] == 37
    assert "usage" not in launch("--no-usage").open().prompt("hi")[1]["result"]


@pytest.mark.parametrize(
    "script",
    ["sleep 60", "hang", "chunks 1000 10 50", "flood 100000000 100", "tools 100 100", "ask Delete it"],
)
def test_a_cancel_ends_the_turn_and_keeps_what_was_said(launch: Launch, script: str) -> None:
    one = launch().open()
    number = one.start(f"echo begun\n{script}\necho never")
    assert said([one.message()]) == "begun"
    one.cancel()
    started = time.monotonic()
    before, answer = one.until(number)
    assert answer["result"]["stopReason"] == "cancelled"
    assert time.monotonic() - started < 30
    assert "never" not in said(before)
    assert one.memory()[1][1].startswith("begun")
    assert one.say("count") == "turn=2"


def test_a_cancel_that_follows_at_once_is_not_lost(launch: Launch) -> None:
    one = launch().open()
    for _ in range(50):
        number = one.start("hang")
        one.cancel()
        assert one.until(number)[1]["result"]["stopReason"] == "cancelled"


def test_cancel_may_be_answered_wrongly_or_ignored(launch: Launch) -> None:
    wrong = launch("--end-turn-on-cancel").open()
    number = wrong.start("hang")
    wrong.cancel()
    assert wrong.until(number)[1]["result"]["stopReason"] == "end_turn"
    deaf = launch("--ignore-cancel").open()
    number = deaf.start("echo a\nsleep 0.3\necho b")
    deaf.cancel()
    before, answer = deaf.until(number)
    assert (said(before), answer["result"]["stopReason"]) == ("ab", "end_turn")


def test_a_killed_turn_leaves_its_prompt_in_memory(launch: Launch, tmp_path: Path) -> None:
    witness = tmp_path / "witness.jsonl"
    one = launch("--witness", str(witness)).open()
    one.prompt("first")
    one.start("echo half\nhang")
    assert said([one.message()]) == "half"
    one.kill()
    assert one.memory() == [("user", "first"), ("assistant", "first"), ("user", "echo half\nhang")]
    again = launch("--witness", str(witness))
    replayed = again.load(one.session)
    assert kinds(replayed) == ["user_message_chunk", "agent_message_chunk", "user_message_chunk"]
    assert json.loads(again.say("recall")) == ["first", "echo half\nhang"]
    assert again.say("count") == "turn=4"
    seen = [json.loads(line) for line in witness.read_text().splitlines()]
    assert [line["prompt"] for line in seen] == ["first", "echo half\nhang", "recall", "count"]
    assert [line["pid"] for line in seen] == [one.process.pid] * 2 + [again.process.pid] * 2
    assert {line["session"] for line in seen} == {one.session}


def test_a_torn_last_line_is_no_obstacle(launch: Launch, tmp_path: Path) -> None:
    one = launch().open()
    one.prompt("first")
    one.kill()
    with (tmp_path / ".scripted" / f"{one.session}.jsonl").open("a") as file:
        file.write('{"role": "user", "te')
    again = launch()
    assert len(again.load(one.session)) == 2


def test_resume_does_not_replay_unless_told(launch: Launch) -> None:
    one = launch().open()
    one.prompt("first")
    one.kill()
    assert launch().load(one.session, "resume") == []
    assert len(launch("--replay-on-resume").load(one.session, "resume")) == 2


def test_the_last_turn_can_be_lost(launch: Launch) -> None:
    one = launch("--lose-last").open()
    one.prompt("first")
    one.prompt("second")
    one.kill()
    again = launch("--lose-last")
    again.load(one.session)
    assert json.loads(again.say("recall")) == ["first"]
    assert again.hang_up() == 0
    assert again.memory()[-2] == ("user", "recall")


def test_only_the_last_block_is_a_script_and_the_rest_is_context(launch: Launch) -> None:
    one = launch().open()
    assert one.say("Before this:\ncrash", "hello") == "hello"
    assert json.loads(one.say("recall")) == ["hello"]
    roles = [line["role"] for line in json.loads(one.say("recall all"))]
    assert roles == ["context", "user", "assistant", "user", "assistant"]
    assert one.say("summary") == "Summary of 3 prompts: 1. hello; 2. recall; 3. recall all"


def test_capabilities_can_be_taken_away(launch: Launch) -> None:
    full = launch().call("initialize", protocolVersion=1)["agentCapabilities"]
    assert full["loadSession"] is True
    assert set(full["sessionCapabilities"]) == {"close", "list", "resume"}
    less = launch("--no-load", "--no-resume")
    abilities = less.call("initialize", protocolVersion=1)["agentCapabilities"]
    assert abilities["loadSession"] is False
    assert set(abilities["sessionCapabilities"]) == {"close", "list"}
    for method in ("session/load", "session/resume", "session/nonsense"):
        assert less.call(method, sessionId="x")["code"] == -32601


def test_sessions_are_listed_set_and_closed(launch: Launch, tmp_path: Path) -> None:
    one = launch().open()
    rows = one.call("session/list")["sessions"]
    assert [(row["sessionId"], row["cwd"]) for row in rows] == [(one.session, str(tmp_path))]
    assert one.call("session/list", cwd="/elsewhere") == {"sessions": []}
    assert one.call("session/set_mode", sessionId=one.session, modeId="plan") == {}
    assert one.call("session/set_mode", sessionId=one.session, modeId="nope")["code"] == -32602
    chosen = one.call("session/set_config_option", sessionId=one.session, configId="model", value="m-9")
    assert chosen["configOptions"][0]["currentValue"] == "m-9"
    assert one.call("session/close", sessionId=one.session) == {}
    assert one.prompt("hi")[1]["error"]["code"] == -32002
    back = one.call("session/load", sessionId=one.session, cwd=str(tmp_path), mcpServers=[])
    assert back["modes"]["currentModeId"] == "plan"
    for unknown in ("nope", "../../etc/passwd"):
        assert one.call("session/load", sessionId=unknown)["code"] == -32002


def test_two_sessions_in_one_process_do_not_wait_for_each_other(launch: Launch) -> None:
    one = launch().open()
    first, number = one.session, one.start("hang")
    one.session = one.call("session/new", cwd="/tmp", mcpServers=[])["sessionId"]
    assert kinds([one.message()]) == ["available_commands_update"]
    assert one.say("free") == "free"
    one.session = first
    one.cancel()
    assert one.until(number)[1]["result"]["stopReason"] == "cancelled"


def test_permission_is_asked_and_the_choice_is_said(launch: Launch) -> None:
    one = launch().open()
    for outcome, expected in (
        ({"outcome": "selected", "optionId": "allow_once"}, "permission: allow_once"),
        ({"outcome": "cancelled"}, "permission: cancelled"),
    ):
        number = one.start("ask Delete the moon delete")
        assert kinds([one.message()]) == ["tool_call"]
        request = one.message()
        assert request["method"] == "session/request_permission"
        assert request["params"]["toolCall"]["title"] == "Delete the moon"
        assert request["params"]["toolCall"]["kind"] == "delete"
        assert len(request["params"]["options"]) == 4
        one.send(id=request["id"], result={"outcome": outcome})
        assert said(one.until(number)[0]) == expected


def test_files_and_terminals_through_the_client(launch: Launch, tmp_path: Path) -> None:
    one = launch().open()

    def serve(script: str, *answers: tuple[str, object]) -> str:
        number = one.start(script)
        for method, result in answers:
            request = one.message()
            assert request["method"] == method
            assert request["params"]["sessionId"] == one.session
            if method.startswith("fs/"):
                assert request["params"]["path"] == str(tmp_path / "a.txt")
            one.send(id=request["id"], result=result)
        return said(one.until(number)[0])

    assert serve("fs-read a.txt", ("fs/read_text_file", {"content": "inside"})) == "inside"
    assert serve("fs-write a.txt b c", ("fs/write_text_file", {})) == "wrote a.txt"
    steps = [
        ("terminal/create", {"terminalId": "t"}),
        ("terminal/wait_for_exit", {"exitCode": 0, "signal": None}),
        ("terminal/output", {"output": "out", "truncated": False}),
        ("terminal/release", {}),
    ]
    assert serve("terminal ls -l", *steps) == "exit=0 signal=None\nout"
    number = one.start("fs-read a.txt")
    one.send(id=one.message()["id"], error={"code": -32601, "message": "no"})
    assert said(one.until(number)[0]) == "error: -32601 no"
