"""`clawdforge -p`: one answer for a person, a script or a reader of events; and what its exit code says."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.api.harness import App, Server, until
from tests.cli.kit import Cli

pytestmark = pytest.mark.slow


def test_text_is_the_answer_and_nothing_else(cli: Cli) -> None:
    done = cli("-p", "echo hello\nthink aloud\ntool look\necho  there")
    assert done.stdout == "hello there\n"
    assert done.stderr == ""


def test_its_agent_ends_with_it(make: Callable[..., Cli], tmp_path: Path) -> None:
    """It would otherwise stay for minutes, waiting for a prompt that does not come."""
    server = Server(tmp_path / "data", {})
    try:
        assert make(server.data_dir)("-p", "echo hello").stdout == "hello\n"
        with server.admin() as operator:
            until(lambda: "agents_live 0\n" in operator.get("/metrics").text, "it ended")
    finally:
        server.stop()


def test_the_prompt_may_come_on_stdin(cli: Cli) -> None:
    assert cli("-p", stdin="echo from the pipe\n").stdout == "from the pipe\n"
    assert cli("-p", "-", stdin="echo dash\n").stdout == "dash\n"


def test_letters_of_the_world_where_the_locale_is_ascii(server: Server, make: Callable[..., Cli]) -> None:
    """In words, on stdin, in the answer and in the name of the folder."""
    cli = make(server.data_dir, LC_ALL="C", PYTHONUTF8="0")
    folder = cli.project / "폴더"
    folder.mkdir()
    assert cli("-p", "echo 안녕", cwd=folder).stdout == "안녕\n"
    assert cli("-p", "-C", str(folder), stdin="echo grüß dich\n").stdout == "grüß dich\n"


def test_json_has_the_keys_that_scripts_know(cli: Cli) -> None:
    found = cli.json("-p", "--output-format", "json", "echo hi\nusage 30 12")
    assert found["result"] == "hi"
    assert found["is_error"] is False
    assert found["type"] == "result"
    assert found["subtype"] == "success"
    assert (found["num_turns"], found["stop_reason"]) == (1, "end_turn")
    assert found["usage"]["input_tokens"] == 30
    assert {"session_id", "total_cost_usd", "duration_ms"} <= set(found)
    again = cli.json("-p", "-c", "--output-format", "json", "recall")
    assert again["session_id"] == found["session_id"]
    assert "echo hi" in again["result"]


def test_num_turns_counts_the_rounds_of_tools(cli: Cli) -> None:
    prompt = "think first\ntool look\ntool again\necho done"
    assert cli.json("-p", "--output-format", "json", prompt)["num_turns"] == 3
    opened, closed = [
        [
            {"sessionUpdate": kind, "toolCallId": call, "title": call, "status": status}
            for call in ("one", "two")
        ]
        for kind, status in (("tool_call", "pending"), ("tool_call_update", "completed"))
    ]
    side_by_side = [f"update {json.dumps(update)}" for update in [*opened, *closed]]
    prompt = "\n".join(["echo both", *side_by_side, "echo done"])
    assert cli.json("-p", "--output-format", "json", prompt)["num_turns"] == 2


def test_stream_json_is_the_log(cli: Cli, local: App) -> None:
    lines = [
        json.loads(line)
        for line in cli("-p", "--output-format", "stream-json", "chunks 3").stdout.splitlines()
    ]
    *events, result = lines
    assert result["type"] == "result"
    assert (result["result"], result["last_seq"]) == ("1 2 3 ", events[-1]["seq"])
    path = f"/sessions/{result['session_id']}/events?limit=500&form=compact"
    page = local.http.get(path).json()["events"]
    assert events == [event for event in page if event["turn"] == 1]


def test_an_agent_that_fails(cli: Cli) -> None:
    done = cli("-p", "echo half\nerror no luck", code=1)
    assert done.stdout == "half\n"
    assert "no luck" in done.stderr
    found = cli.json("-p", "--output-format", "json", "error no luck", code=1)
    assert found["is_error"]
    assert "no luck" in found["error"]


def test_a_turn_that_takes_too_long(cli: Cli) -> None:
    assert "--timeout" in cli("-p", "--timeout", "0.3", "sleep 30", code=3).stderr


def test_a_turn_that_crosses_its_limit(cli: Cli, local: App) -> None:
    stopped = cli("-p", "--max-cost-usd", "0.5", "echo so far\ncost 1\nhang", code=9)
    assert stopped.stdout == "so far\n"
    assert "max_cost_usd of 0.5, at 1" in stopped.stderr
    session_id = local.session()
    found = cli.json(
        "send", session_id, "--max-tool-calls", "0", "--output-format", "json", "tool x 60000", code=9
    )
    assert (found["stopped_by"], found["stop_reason"]) == ("max_tool_calls", "stopped_by_limit")
    assert cli("send", session_id, "--max-seconds", "0.3", "hang", code=9).stdout == ""
    assert cli("send", session_id, "--max-tokens", "100000", "echo fine").stdout == "fine\n"


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("refuse", "the model refused to answer"),
        ("echo half\nmax-tokens", "go on"),
        ("stop max_turn_requests", "limit of calls"),
    ],
)
def test_an_end_that_is_not_the_answers_own_is_told(cli: Cli, prompt: str, words: str) -> None:
    """It was an empty line and success before."""
    done = cli("-p", prompt, code=10)
    assert words in done.stderr
    assert done.stdout == ("half\n" if "half" in prompt else "")
    assert cli("-p", "--quiet", prompt, code=10).stderr == ""


def test_what_nobody_can_allow_is_refused(cli: Cli) -> None:
    done = cli("-p", "ask write a file edit", code=5)
    assert "permission: reject" in done.stdout
    assert "--permission-mode" in done.stderr
    assert cli("-p", "ask look around read").stdout.startswith("permission: allow")
    assert cli("-p", "--permission-mode", "approve_all", "ask write it edit").stdout.startswith(
        "permission: allow"
    )


def test_approve_and_deny_from_another_terminal(cli: Cli, local: App) -> None:
    for command, answer in (("approve", "allow_once"), ("deny", "reject_once")):
        asking = cli.start(
            "-p", "--permission-mode", "ask", "-n", f"{cli.project} {command}", f"ask {command} me"
        )
        session = until(lambda title=f"{cli.project} {command}": _asking(local, title), "the question")  # type: ignore[misc]
        cli(command, session)
        out, _ = asking.communicate(timeout=30)
        assert f"permission: {answer}" in out
    assert "nothing is waiting" in cli("approve", session, code=4).stderr


def _asking(local: App, title: str) -> str | None:
    for row in local.http.get("/sessions", params={"q": title}).json()["sessions"]:
        if local.http.get(f"/sessions/{row['session_id']}/permissions").json()["permissions"]:
            return str(row["session_id"])
    return None


def test_ctrl_c_stops_the_turn_and_keeps_the_answer(cli: Cli, local: App) -> None:
    asking = cli.start("-p", "echo the beginning\nsleep 60")
    assert asking.stdout is not None
    assert asking.stdout.read(13) == "the beginning"
    os.kill(asking.pid, signal.SIGINT)
    _, told = asking.communicate(timeout=30)
    assert asking.returncode == 130
    assert "kept" in told
    (row,) = cli.json("sessions", "list", "--json")
    messages = local.http.get(f"/sessions/{row['session_id']}/messages").json()["messages"]
    assert messages[-1]["content"] == "the beginning"
    assert row["running_turn"] is None


def test_a_reader_that_leaves_is_no_error(cli: Cli) -> None:
    with cli.start("-p", "chunks 2000 100") as asking:
        assert asking.stdout is not None
        assert asking.stderr is not None
        asking.stdout.read(5)
        asking.stdout.close()
        asking.wait(30)
        assert "Traceback" not in asking.stderr.read()


@pytest.mark.parametrize(
    ("name", "value", "code"), [("TOKEN", "cf_wrong", 6), ("URL", "http://127.0.0.1:1", 7)]
)
def test_the_wrong_token_and_no_server(
    server: Server, make: object, name: str, value: str, code: int
) -> None:
    assert callable(make)
    cli: Cli = make(server.data_dir, **{"CLAWDFORGE_TOKEN": "cf_some", f"CLAWDFORGE_{name}": value})
    for words in (["sessions", "list"], ["-p", "x"]):
        assert cli(*words, code=code).stdout == ""


def test_the_agents_escape_codes_do_not_reach_the_terminal(cli: Cli) -> None:
    update = {
        "sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": "a\x1b]0;title\x07\x1b[31mb"},
    }
    assert cli("-p", f"update {json.dumps(update)}").stdout == "ab\n"


def test_continue_resume_and_fork(cli: Cli) -> None:
    assert "no open session" in cli("-p", "-c", "x", code=4).stderr
    first = cli.json("-p", "-n", "my first", "--output-format", "json", "echo one")["session_id"]
    assert cli.json("-p", "-r", "my first", "--output-format", "json", "echo two")["session_id"] == first
    fork = cli.json("-p", "-c", "--fork", "--output-format", "json", "recall")
    assert fork["session_id"] != first
    assert fork["result"] == '["echo one", "echo two"]'
    assert cli.json("sessions", "show", first, "--json")["turn_count"] == 2
    assert "--resume" in cli("-p", "x", "-r", code=2).stderr
