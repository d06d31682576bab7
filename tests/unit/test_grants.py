"""Nobody is asked twice about one call of a tool; and what was allowed lets nothing else through."""

from pathlib import Path
from typing import Any

import pytest

from clawdforge.core.models.agents import Ask, Verdict
from clawdforge.drivers.acp.grants import MOST, Grants, describe_variables
from clawdforge.drivers.processes.containment import probe
from clawdforge.wire.json_bounds import LARGE_BYTES
from tests.unit.acp_bench import Bench, say
from tests.unit.test_acp_client import program

OPTIONS = (
    {"optionId": "yes", "kind": "allow_once"},
    {"optionId": "always", "kind": "allow_always"},
    {"optionId": "no", "kind": "reject_once"},
)


def call(command: Any, name: str = "c1", **more: Any) -> dict[str, Any]:
    line = command if isinstance(command, str) else " ".join(command)
    title = f"Bash: {line}"
    return {"toolCallId": name, "title": title, "kind": "execute", "rawInput": {"command": command}, **more}


def allowed(command: Any, option: str = "yes", options: Any = OPTIONS) -> Grants:
    grants = Grants()
    grants.note(call(command), options, option)
    return grants


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        ("ls -la", {"command": "ls -la"}),
        ("ls -la", {"command": "ls", "args": ["-la"]}),
        ("ls -la", {"command": "bash", "args": ["-c", "ls -la"]}),
        ("ls -la", {"command": "/bin/bash", "args": ["-l", "-c", "ls -la"]}),
        (["bash", "-lc", "ls -la"], {"command": "ls -la"}),
        (["ls", "-la"], {"command": "ls", "args": ["-la"]}),
        (
            "ls",
            {"command": "ls", "env": [{"name": "NO_COLOR", "value": "1"}, {"name": "PAGER", "value": "cat"}]},
        ),
    ],
)
def test_the_command_that_was_shown_is_run_once_without_a_question(
    shown: Any, wanted: dict[str, Any]
) -> None:
    grants = allowed(shown)
    assert grants.take(wanted)
    assert not grants.take(wanted), "it was allowed once"


@pytest.mark.parametrize(
    "wanted",
    [
        {"command": "ls -la; rm -rf ~"},
        {"command": "ls"},
        {"command": "ls -la "},
        {"command": "ls", "args": ["-la", "/"]},
        {"command": "/tmp/bash", "args": ["-c", "ls -la"]},
        {"command": "bash", "args": ["--rcfile", "-c", "ls -la"]},
        {"command": "bash", "args": ["-c", "ls -la", "x"]},
        {"command": "python3", "args": ["-c", "ls -la"]},
        {"command": "ls -la", "env": [{"name": "LD_PRELOAD", "value": "evil.so"}]},
        {"command": "ls -la", "env": [{"name": "PAGER", "value": "rm"}]},
        {"command": "ls -la", "env": "odd"},
        {"command": 5},
        {"command": "ls -la", "args": [5]},
        {},
    ],
)
def test_what_is_not_that_very_command_is_asked_about(wanted: dict[str, Any]) -> None:
    assert not allowed("ls -la").take(wanted)


def test_words_that_are_apart_are_not_a_line_for_a_shell() -> None:
    assert not allowed(["echo", "a; rm b"]).take({"command": "echo a; rm b"})
    assert not allowed("echo a; rm b").take({"command": "echo", "args": ["a;", "rm", "b"]})


@pytest.mark.parametrize("options", [OPTIONS, (*OPTIONS, {"optionId": "no", "kind": "allow_once"}), ()])
def test_what_was_refused_or_is_unclear_allows_nothing(options: Any) -> None:
    assert not allowed("ls", "no", options).take({"command": "ls"})


def test_a_turn_forgets_what_the_last_one_decided() -> None:
    grants = allowed("ls")
    assert grants.find(call("ls"), OPTIONS) == "yes"
    grants.clear()
    assert grants.find(call("ls"), OPTIONS) is None
    assert not grants.take({"command": "ls"})


def test_the_same_call_is_the_same_only_with_the_same_content() -> None:
    grants = allowed("ls", "no")
    assert grants.find(call("ls"), OPTIONS) == "no"
    assert grants.find(call("rm"), OPTIONS) is None
    assert grants.find(call("ls", title="Other"), OPTIONS) is None
    assert grants.find(call("ls", name="c2"), OPTIONS) is None
    assert grants.find(call("ls"), OPTIONS[:1]) is None
    grants.note({"title": "without an id"}, OPTIONS, "yes")
    assert grants.find({"title": "without an id"}, OPTIONS) is None


@pytest.mark.parametrize(
    "more",
    [
        {"title": "Bash"},
        {"title": None},
        {"title": "Run xls -la"},
        {"title": "ls -la /"},
        {"kind": "read"},
        {"kind": None},
    ],
)
def test_a_command_that_the_calls_name_does_not_show_is_asked_about(more: dict[str, Any]) -> None:
    """By name and kind a call is allowed, for good or by the session's mode, whatever lies in it."""
    grants = Grants()
    grants.note(call("ls -la", **more), OPTIONS, "yes")
    assert not grants.take({"command": "ls -la"})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (None, ""),
        ([], ""),
        ([{"name": "TERM", "value": "dumb"}, {"name": "PAGER", "value": "cat"}], ""),
        ([{"name": "PAGER", "value": "sh"}, {"name": "LD_PRELOAD", "value": "x"}], "PAGER=sh LD_PRELOAD=x"),
        ("odd", "odd variables"),
        ([1], "odd variables"),
    ],
)
def test_variables_that_change_a_command_are_told(given: Any, told: str) -> None:
    """What is allowed for good is allowed with them and in that folder only: both are in its name."""
    assert describe_variables(given) == told


def test_what_is_remembered_is_bounded() -> None:
    grants = Grants()
    for number in range(MOST + 1):
        grants.note(call(f"c{number}", name=f"n{number}"), OPTIONS, "yes")
    assert grants.take({"command": f"c{MOST - 1}"})
    assert not grants.take({"command": f"c{MOST}"})


async def test_an_agent_that_asks_and_then_has_us_run_it_makes_one_question(tmp_path: Path) -> None:
    source = """
options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
def on_prompt(text):
    if text == "ask":
        shown = {"toolCallId": "c1", "title": "Bash: echo hi", "kind": "execute",
                 "rawInput": {"command": "echo hi"}}
        for _ in range(2):
            say(call("session/request_permission", toolCall=shown, options=options)["outcome"]["optionId"])
    for command in ("echo hi", "echo hi", "echo other"):
        name = call("terminal/create", command=command)["terminalId"]
        call("terminal/wait_for_exit", terminalId=name)
"""
    bench = Bench(tmp_path, probe("off"))
    async with bench.program(program(source)) as agent:
        first = await say(agent, "ask")
        second = await say(agent, "go on")
    assert [ask.tool for ask in first.asks] == ["Bash: echo hi", "Run echo hi", "Run echo other"]
    assert first.texts() == ["yes", "yes"]
    assert [ask.tool for ask in second.asks] == ["Run echo hi", "Run echo hi", "Run echo other"]
    names = {option["kind"]: option["name"] for option in second.asks[0].options}
    assert names["allow_always"] == "Always allow this very command"


async def test_what_is_allowed_for_good_is_taken_as_allowed(tmp_path: Path) -> None:
    async def always(request: Ask) -> Verdict:
        return Verdict(option_id=next(o["optionId"] for o in request.options if o["kind"] == "allow_always"))

    bench = Bench(tmp_path, probe("off"))
    async with bench.scripted() as agent:
        sink = await say(agent, "fs-write a.txt b\nfs-read a.txt\nterminal echo c", deciding=always)
    assert sink.texts()[:2] == ["wrote a.txt", "b"]
    assert "c" in sink.texts()[2]


@pytest.mark.parametrize(("size", "found"), [(LARGE_BYTES // 2, "yes"), (LARGE_BYTES, None)])
def test_calls_of_megabytes_are_not_compared(size: int, found: str | None) -> None:
    """That took the event loop a tenth of a second for 9 MB. Such a call is asked about again."""
    grants, large = Grants(), call("ls", title="x" * size)
    grants.note(large, OPTIONS, "yes")
    assert grants.find(large, OPTIONS) == found
