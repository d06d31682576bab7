"""`POST /run`: the shape of v0.1, whatever the program behind it does."""

import json
import sys
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest

from clawdforge import Forge
from tests.api.harness import App, Server, until

PROGRAM = f"#!{sys.executable} -IS\n" + textwrap.dedent(
    """
    import json, os, sys, time
    prompt = sys.stdin.read()
    last = prompt.rsplit("\\n", 1)[-1]
    command, _, rest = last.partition(" ")
    said = {"type": "result", "subtype": "success", "is_error": False, "stop_reason": "end_turn"}
    def answer(text, **more):
        print(json.dumps({**said, "result": text, **more}))
    if command == "say": answer(rest)
    elif command == "null-reason": answer("{}", stop_reason=None)
    elif command == "tokens": answer("cut", stop_reason="max_tokens")
    elif command == "args": answer(json.dumps(sys.argv[1:]))
    elif command == "env": answer(json.dumps(dict(os.environ)))
    elif command == "where": answer(json.dumps([os.getcwd(), os.environ["HOME"], os.listdir(".")]))
    elif command == "prompt": answer(json.dumps(prompt))
    elif command == "read":
        paths = [line[2:] for line in prompt.splitlines() if line.startswith("- ")]
        answer(json.dumps([open(path).read() for path in paths]))
    elif command == "exit":
        sys.stderr.write("it went wrong")
        sys.exit(int(rest))
    elif command == "api-error":
        answer("API Error: 400 no such model", is_error=True)
        sys.exit(1)
    elif command == "is-error": answer("no credit", is_error=True)
    elif command == "garbage": print("this is no JSON")
    elif command == "warned":
        print("a warning first")
        answer('{"a": 1}')
    elif command == "huge":
        for _ in range(40): sys.stdout.write("x" * 1024 * 1024)
    elif command == "deep": answer("[" * 900 + "]" * 900)
    elif command == "surrogate": print(json.dumps({**said, "result": "x\\ud800y"}))
    elif command == "hang":
        if os.fork() == 0:
            os.setsid()
        time.sleep(60)
    """
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose claude is a program of ours."""
    folder = tmp_path_factory.mktemp("runs")
    program = folder / "claude"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    folder.chmod(0o755)  # each app's user has to get to it
    secrets = {"ANTHROPIC_API_KEY": "sk-test", "OTHER_SECRET": "no"}
    env = {"CLAWDFORGE_CLAUDE_BIN": str(program), "CLAWDFORGE_MAX_LIVE_AGENTS": "2", **secrets}
    server = Server(folder / "data", env)
    yield server
    server.stop()


@pytest.fixture
def caller(runs: Server) -> App:
    return runs.app()


def run(app: App, prompt: str, **body: Any) -> httpx2.Response:
    return app.http.post("/run", json={"prompt": prompt, **body})


def rows(server: Server, app: App) -> list[tuple[Any, ...]]:
    columns = "model, prompt, ok, stop_reason, duration_ms, error"
    query = f"SELECT {columns} FROM runs WHERE app_name = ? ORDER BY created_at"  # noqa: S608 - our own words
    return server.sql(query, app.name)


def left(server: Server) -> list[Any]:
    """Processes and folders of runs. What the server started itself, at its start, is older than any."""
    folder = server.data_dir / "runs"
    opened = (server.data_dir / "server.lock").stat().st_mtime
    children = psutil.Process(server.process.pid).children(recursive=True)
    found = [child for child in children if child.create_time() > opened]
    return [*found, *(folder.iterdir() if folder.exists() else ())]


def test_the_answer_has_exactly_four_keys(runs: Server, caller: App) -> None:
    """S0-100, S0-101, S0-104."""
    reply = run(caller, 'say {"hello": "world"}', model="sonnet")
    assert reply.status_code == 200
    body = reply.json()
    assert set(body) == {"ok", "result", "duration_ms", "stop_reason"}
    assert (body["ok"], body["result"], body["stop_reason"]) == (True, {"hello": "world"}, "end_turn")
    assert isinstance(body["duration_ms"], int)
    (row,) = rows(runs, caller)
    assert row == ("sonnet", 'say {"hello": "world"}', 1, "end_turn", body["duration_ms"], None)
    assert left(runs) == []
    assert caller.http.get("/sessions").json()["count"] == 0


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("[1, 2.5, null]", [1, 2.5, None]),
        ('"quoted"', "quoted"),
        ("plain words", "plain words"),
        ("```json", "```json"),
        ('{"half":', '{"half":'),
        ("NaN", "NaN"),
        ("", ""),
        ("\u00e9\u2028\U0001f980", "\u00e9\u2028\U0001f980"),
    ],
)
def test_the_result_is_the_value_that_the_model_wrote(caller: App, text: str, result: Any) -> None:
    reply = run(caller, f"say {text}")
    assert (reply.status_code, reply.json()["result"]) == (200, result)


def test_odd_answers_are_still_answers(caller: App) -> None:
    assert run(caller, "null-reason").json()["stop_reason"] == "end_turn"
    assert run(caller, "tokens").json()["stop_reason"] == "max_tokens"
    assert run(caller, "warned").json()["result"] == {"a": 1}
    assert run(caller, "surrogate").json()["result"] == "x?y"
    assert run(caller, "deep").json()["result"] == "[" * 900 + "]" * 900


def test_the_program_is_called_in_print_mode_with_the_prompt_on_stdin(caller: App) -> None:
    """S0-102."""
    assert run(caller, "args").json()["result"] == ["-p", "--output-format", "json"]
    with_model = run(caller, "args", model="opus").json()["result"]
    assert with_model == ["-p", "--output-format", "json", "--model", "opus"]
    long = "--help $(id)\n" + "x" * 3_000_000 + "\nprompt"
    assert run(caller, long).json()["result"] == long
    for model in ("--dangerously-skip-permissions", "a\0b"):
        assert run(caller, "args", model=model).status_code == 422


def test_the_program_sees_little_of_the_server(runs: Server, caller: App) -> None:
    env = run(caller, "env").json()["result"]
    assert env["ANTHROPIC_API_KEY"] == "sk-test"
    assert "OTHER_SECRET" not in env
    assert not [name for name in env if name.startswith("CLAWDFORGE_") and "TOKEN" in name]
    cwd, home, inside = run(caller, "where").json()["result"]
    assert inside == []
    assert home != cwd
    assert not Path(home).exists()
    assert not Path(cwd).exists()
    assert left(runs) == []


def test_files_come_as_in_turns(runs: Server, caller: App) -> None:
    tokens = [
        caller.http.post("/files", files={"file": (name, name.encode())}).json()["file_token"]
        for name in ("a.txt", "b.txt")
    ]
    prompt = run(caller, "prompt", files=tokens).json()["result"]
    assert prompt.startswith("[Attached files]\n- /")
    assert prompt.endswith("\n\nprompt")
    assert run(caller, "read", files=tokens).json()["result"] == ["a.txt", "b.txt"]
    before = len(rows(runs, caller))
    refused = run(runs.app(), "read", files=tokens)
    assert (refused.status_code, refused.json()["code"]) == (400, "unknown_file")
    assert len(rows(runs, caller)) == before


@pytest.mark.parametrize(
    ("prompt", "error", "words", "stderr"),
    [
        ("exit 1", "claude exit 1", "", "it went wrong"),
        ("exit 42", "claude exit 42", "", "it went wrong"),
        ("api-error", "claude exit 1", "API Error: 400 no such model", ""),
        ("is-error", "claude reported an error", "no credit", ""),
        ("garbage", "claude did not answer with a result in JSON", "this is no JSON", ""),
        ("huge", "claude printed more than 33554432 bytes", "", ""),
    ],
)
def test_a_run_that_fails_is_a_502_that_says_why(
    runs: Server, caller: App, prompt: str, error: str, words: str, stderr: str
) -> None:
    """S0-103; `subtype` says success even then."""
    reply = run(caller, prompt)
    assert reply.status_code == 502
    body = reply.json()
    assert set(body) == {"ok", "error", "detail", "code", "stderr", "duration_ms", "stop_reason"}
    assert (body["ok"], body["error"], body["code"]) == (False, error, "run_failed")
    assert body["stderr"] == stderr
    assert body["stop_reason"] == "error"
    assert body["detail"] == (f"{error}: {words}" if words else error)
    assert rows(runs, caller)[-1][2:4] == (0, "error")
    assert left(runs) == []


def test_a_run_that_takes_too_long_is_a_504_and_ends_with_all_it_started(runs: Server, caller: App) -> None:
    began = time.monotonic()
    reply = run(caller, "hang", timeout_secs=0.7)
    assert reply.status_code == 504
    assert (reply.json()["stop_reason"], reply.json()["ok"]) == ("timeout", False)
    assert "0.7 s" in reply.json()["error"]
    assert time.monotonic() - began < 40, "the program hangs for ever"
    assert rows(runs, caller)[-1][2:4] == (0, "timeout")
    assert left(runs) == []


def test_a_caller_that_hangs_up_ends_its_run(runs: Server, caller: App) -> None:
    with pytest.raises(httpx2.ReadTimeout):
        caller.http.post("/run", json={"prompt": "hang"}, timeout=1.0)
    until(lambda: not left(runs), "the end of the run")
    until(lambda: rows(runs, caller), "the run's row")
    assert "hung up" in rows(runs, caller)[-1][5]


def test_runs_beyond_the_room_wait_for_it(runs: Server, caller: App) -> None:
    with ThreadPoolExecutor(6) as pool:
        replies = list(pool.map(lambda n: run(caller, f"say {n}"), range(6)))
    assert [reply.json()["result"] for reply in replies] == list(range(6))
    assert left(runs) == []


def test_an_app_has_no_more_runs_in_flight_than_it_may(runs: Server, caller: App) -> None:
    limits = {"app_name": caller.name, "limits": {"max_turns_in_flight": 0}}
    assert runs.admin().post("/admin/apps", json=limits).status_code == 200
    reply = run(caller, "say x")
    assert (reply.status_code, reply.json()["code"]) == (429, "limit_exceeded")
    assert int(reply.headers["retry-after"]) >= 1


def test_without_the_program_it_says_what_to_do(app: App) -> None:
    reply = run(app, "x")
    assert (reply.status_code, reply.json()["code"]) == (503, "agent_not_installed")
    assert "npm install -g @anthropic-ai/claude-code" in reply.json()["error"]
    assert set(reply.json()) >= {"stderr", "duration_ms", "stop_reason"}


def test_a_bad_request_is_refused_before_anything_runs(runs: Server, caller: App) -> None:
    for body in (
        {},
        {"prompt": ""},
        {"prompt": 1},
        {"prompt": "x", "timeout_secs": 0},
        {"prompt": "x", "files": 1},
    ):
        assert caller.http.post("/run", json=body).status_code == 422, body
    assert rows(runs, caller) == []


def test_the_sdk_runs(runs: Server, caller: App) -> None:
    with Forge(base_url=runs.url, token=caller.token) as forge:
        assert forge.run('say {"a": [1]}', model="sonnet").result == {"a": [1]}
        with pytest.raises(Exception, match="claude exit 3") as failed:
            forge.run("exit 3")
    assert json.dumps(getattr(failed.value, "body", {})).count("it went wrong") == 1


def test_a_server_that_stops_ends_its_runs(runs: Server, tmp_path: Path) -> None:
    env = {"CLAWDFORGE_CLAUDE_BIN": str(runs.data_dir.parent / "claude"), "CLAWDFORGE_STOP_GRACE_SECS": "0.5"}
    server = Server(tmp_path / "data", env)
    app = server.app()
    try:
        with ThreadPoolExecutor(1) as pool:
            reply = pool.submit(run, app, "hang")
            until((server.data_dir / "runs").exists, "the run's start")
            children = until(
                lambda: psutil.Process(server.process.pid).children(recursive=True), "the run's process"
            )
            server.process.terminate()
            assert reply.result().status_code == 503
            assert reply.result().json()["code"] == "stopping"
    finally:
        server.stop()
    until(lambda: not any(child.is_running() for child in children), "the end of all processes")
    assert list((server.data_dir / "runs").iterdir()) == []
