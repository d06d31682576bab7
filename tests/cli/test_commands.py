"""Every other command against a real server, in this process for speed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from clawdforge.cli import main
from tests.api.harness import ADMIN_TOKEN, App, Server

pytestmark = pytest.mark.slow
Run = Callable[..., str]


@pytest.fixture
def run(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run("sessions", "list")` gives stdout; `code=` is the exit code that is expected."""
    monkeypatch.chdir(tmp_path)

    def call(*args: str, code: int = 0, stdin: str = "") -> str:
        env = {
            "CLAWDFORGE_DATA_DIR": str(server.data_dir),
            "CLAWDFORGE_ADMIN_TOKEN": ADMIN_TOKEN,
            "HOME": str(tmp_path),
        }
        result = CliRunner(env=env).invoke(main, args, input=stdin)
        assert result.exit_code == code, f"{args}: {result.exit_code}\n{result.output}\n{result.exception!r}"
        return result.stdout if code == 0 else result.output

    return call


@pytest.fixture
def session(run: Run) -> str:
    found: dict[str, Any] = json.loads(run("-p", "--output-format", "json", "echo apples"))
    return str(found["session_id"])


def test_send_and_tail(run: Run, session: str) -> None:
    assert run("send", session, "echo pears") == "pears\n"
    assert run("send", session, stdin="echo from the pipe") == "from the pipe\n"
    assert "from the pipe" in run("tail", session)
    assert "apples" in run("tail", session, "--after", "0")
    events = [json.loads(line) for line in run("tail", session, "--after", "0", "--json").splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    run("send", session, code=2)
    run("send", "deadbeef", "x", code=4)


def test_stop_takes_the_queue_along_when_asked(run: Run, session: str) -> None:
    assert run("send", session, "--detach", "hang") == "2\n"
    assert run("send", session, "--detach", "echo never") == "3\n"
    run("send", session, "--if-busy", "reject", "echo no", code=1)
    run("stop", session, "--queued")
    assert "never" not in run("sessions", "show", session).replace("echo never", "")


def test_undo_redo_retry(run: Run, session: str) -> None:
    run("send", session, "echo pears")
    assert run("undo", session) == "echo pears\n"
    assert run("send", session, "recall") == '["echo apples"]\n'
    assert run("undo", session, "-n", "2") == "recall\n"
    run("redo", session)
    assert run("send", session, "recall") == '["echo apples", "recall"]\n'
    assert run("retry", session, "--prompt", "echo other words") == "other words\n"
    assert run("retry", session) == "other words\n"
    run("undo", session, "-n", "3")
    assert "undo" in run("undo", session, code=1).lower()


def test_rename_fork_search_export_import_delete(run: Run, session: str, tmp_path: Path) -> None:
    run("sessions", "rename", session, "about fruit")
    fork = run("sessions", "fork", "about fruit", "--title", "a copy").strip()
    assert run("send", fork, "recall") == '["echo apples"]\n'
    assert session[:8] in run("sessions", "search", "apples")
    hits = json.loads(run("sessions", "search", "apples", "--json"))
    assert {hit["session_id"] for hit in hits} >= {session}
    run("sessions", "export", session, "-o", "out.json")
    assert "apples" in run("sessions", "export", session, "--format", "md")
    assert "apples</pre>" in run("sessions", "export", session, "--format", "html")
    made = run("sessions", "import", "out.json").strip()
    assert made != session
    assert "apples" in run("sessions", "show", made)
    listed = tmp_path / "messages.json"
    listed.write_text(json.dumps([{"role": "user", "content": "from elsewhere"}]))
    assert "from elsewhere" in run("sessions", "show", run("sessions", "import", str(listed)).strip())
    listed.write_text("no json")
    assert "--format" in run("sessions", "import", str(listed), code=1)
    run("sessions", "delete", fork, code=2)
    run("sessions", "delete", fork, "--yes")
    run("sessions", "show", fork, code=4)


def test_agents_personas_usage(run: Run, session: str) -> None:
    assert "demo\t" in run("agents")
    assert any(agent["name"] == "claude" for agent in json.loads(run("agents", "--json")))
    assert "default-interactive" in run("personas")
    assert "turns" in run("usage", session)
    assert "local" in run("usage")
    assert any(app["app_name"] == "local" for app in json.loads(run("usage", "--json"))["apps"])


def test_a_token_with_scopes_that_expires(run: Run, server: Server) -> None:
    narrow = ("--scope", "read", "--scope", "decide")
    token = run("token", "create", "narrow", *narrow, "--expires", "7d").strip()
    assert server.client(token).get("/sessions").status_code == 200
    assert server.client(token).post("/sessions", json={}).status_code == 403
    (row,) = json.loads(run("token", "list", "narrow", "--json"))
    assert row["scopes"] == ["read", "decide"]
    assert row["expires_at"] - row["created_at"] == 7 * 86_400
    assert row["last_used_at"] is not None
    line = run("token", "list", "narrow")
    assert "read,decide" in line
    assert "expires" in line
    assert "used" in line
    run("token", "create", "narrow", "--expires-in", "60")
    assert "never used" in run("token", "list", "narrow")
    for wrong in ("soon", "0d", "-1", "1y"):
        run("token", "create", "narrow", f"--expires={wrong}", code=2)
    run("token", "create", "narrow", "--scope", "all", code=2)


def test_tokens_apps_and_the_ledger(run: Run, server: Server) -> None:
    token = run("token", "create", "by-hand", "--note", "for a test").strip()
    assert server.client(token).get("/sessions").status_code == 200
    (row,) = json.loads(run("token", "list", "by-hand", "--json"))
    assert row["note"] == "for a test"
    assert row["token_id"] in run("token", "list")
    run("token", "revoke", row["token_id"])
    assert server.client(token).get("/sessions").status_code == 401
    assert "revoked" in run("token", "list", "by-hand")
    run("token", "revoke", "nobody", code=4)
    run("app", "limit", "by-hand", "--max-sessions", "1")
    assert "max_sessions 1" in run("app", "list")
    assert json.loads(run("stuck", "--json", "--secs", "0")) == {
        "ok": True,
        "sessions": [],
        "count": 0,
        "tasks": {},
    }
    assert run("stuck").strip() == ""
    head = run("audit", "verify").strip()
    assert len(head) == 64
    run("audit", "verify", "--head", head)
    assert "damaged" in run("audit", "verify", "--head", "f" * 64, code=1)


def test_folders_are_granted_shown_and_taken_away(run: Run, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    run("app", "limit", "worker", "--max-sessions", "5")
    run("app", "grant", "worker", str(first))
    run("app", "grant", "worker", f"{second}/", str(first))
    (row,) = [app for app in json.loads(run("app", "list", "--json")) if app["app_name"] == "worker"]
    assert row["workspace_roots"] == [str(first), str(second)]
    assert row["limits"]["max_sessions"] == 5, "a grant leaves the limits alone"
    assert f"{first}, {second}" in run("app", "list")
    run("app", "revoke", "worker", str(first))
    run("app", "limit", "worker")
    (row,) = [app for app in json.loads(run("app", "list", "--json")) if app["app_name"] == "worker"]
    assert (row["workspace_roots"], row["limits"]["max_sessions"]) == ([str(second)], None)
    assert "was not granted to worker" in run("app", "revoke", "worker", str(first), code=1)
    assert "does not exist" in run("app", "grant", "worker", str(tmp_path / "none"), code=2)


def test_run_is_told_what_is_missing(run: Run) -> None:
    run("run", code=2)
    assert run("run", "hello", code=1).startswith("clawdforge: ")


def test_quiet_and_verbose(run: Run, session: str, server: Server) -> None:
    result = CliRunner(env={"CLAWDFORGE_DATA_DIR": str(server.data_dir)}).invoke(
        main, ["--verbose", "send", session, "echo x"]
    )
    assert server.url in result.stderr
    result = CliRunner(env={"CLAWDFORGE_DATA_DIR": str(server.data_dir)}).invoke(
        main, ["sessions", "list", "--quiet", "--agent", "nobody"]
    )
    assert result.output == ""
    assert run("sessions", "list").count("\n") == 1


def complete(server: Server, words: str, shell: str = "bash") -> list[str]:
    """What a shell offers after Tab at the end of `clawdforge` and these words."""
    env = {
        "CLAWDFORGE_DATA_DIR": str(server.data_dir),
        "_CLAWDFORGE_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": f"clawdforge {words}",
        "COMP_CWORD": str(len(words.split(" "))),
    }
    result = CliRunner(env=env).invoke(main, [], prog_name="clawdforge")
    lines: list[str] = result.output.splitlines()
    return [line.removeprefix("plain,") for line in lines if line]


def test_the_shell_completes_ids_with_titles(run: Run, session: str, server: Server) -> None:
    run("sessions", "rename", session, "apples and pears")
    for words in (f"sessions show {session[:7]}", f"-r {session[:3]}", "send "):
        assert session in complete(server, words)
    assert "apples and pears" in complete(server, f"sessions show {session[:7]}", "zsh")
    assert complete(server, "sessions show zzz") == []


def test_the_shell_completes_commands_options_agents_and_personas(server: Server) -> None:
    assert complete(server, "se") == ["send", "serve", "server", "sessions", "setup"]
    assert {"chat", "doctor", "sessions"} <= set(complete(server, ""))
    assert complete(server, "--pri") == ["--print"]
    assert {"-p", "-c", "-a", "--data-dir"} <= set(complete(server, "-"))
    assert complete(server, "sessions li") == ["list"]
    for words in ("-a cla", "--agent cla", "sessions list --agent cla", "pause --agent cla"):
        assert complete(server, words) == ["claude"], words
    assert complete(server, "--persona default-i") == ["default-interactive"]


def test_the_shell_is_offered_nothing_by_a_server_that_is_not_there(tmp_path: Path) -> None:
    env = {"CLAWDFORGE_DATA_DIR": str(tmp_path), "_CLAWDFORGE_COMPLETE": "bash_complete"}
    words = {"COMP_WORDS": "clawdforge -a ", "COMP_CWORD": "2"}
    assert CliRunner(env={**env, **words}).invoke(main, [], prog_name="clawdforge").output.strip() == ""
    assert list(tmp_path.iterdir()) == []


def test_another_apps_sessions_are_unknown(run: Run, server: Server) -> None:
    other: App = server.app()
    theirs = other.session()
    for words in (["sessions", "show", theirs], ["send", theirs, "x"], ["-s", theirs[:8], "-p", "x"]):
        run(*words, code=4)


def test_the_operator_pauses_and_resumes(run: Run, server: Server) -> None:
    app = server.app()
    session_id = app.session()
    made = json.loads(run("pause", "--app", app.name, "--reason", "too dear", "--stop", "--json"))
    assert (made["pause"]["app_name"], made["stopped"]) == (app.name, 0)
    assert app.turn(session_id, "echo hi").json()["reason"] == "too dear"
    (row,) = json.loads(run("pause", "--list", "--json"))
    assert (row["app_name"], row["agent"], row["reason"]) == (app.name, None, "too dear")
    assert "too dear" in run("pause", "--list")
    assert "paused" in next(line for line in run("app", "list").splitlines() if app.name in line)
    run("pause", "--agent", "demo", "--reason", "old")
    assert "paused by the operator: old" in run("agents")
    found = run("doctor")
    assert f"the app {app.name} (too dear): no turn starts there" in found
    assert f"clawdforge resume --app {app.name}" in found
    assert "the agent demo (old)" in found
    nothing = json.loads(run("resume", "--json"))
    assert (nothing["resumed"], len(nothing["pauses"])) == (False, 2)
    run("resume", "--agent", "demo")
    run("resume", "--app", app.name)
    assert app.turn(session_id, "echo hi").status_code == 200
    assert run("pause", "--list") == ""
    run("pause", "--app", "nobody-has-this", code=4)


def test_budgets_are_set_shown_and_removed(run: Run, server: Server, local: App) -> None:
    app = server.app()
    session_id = app.session()
    theirs = run("budget", "set", "--app", app.name, "--tokens", "40", "--then", "stop").strip()
    assert app.turn(session_id, "usage 10 0").status_code == 200
    (row,) = run("budgets", "--app", app.name).splitlines()
    cells = row.split("\t")
    assert cells[:3] == [theirs, f"app {app.name} (operator)", "day"]
    assert cells[3] == "█" * 5 + "░" * 15 + "  25 %"
    assert cells[4:7] == ["10 tokens", "0 tokens", "40 tokens"]
    assert theirs in run("budgets", "--all")
    app.turn(session_id, "usage 30 0")
    refused = app.turn(session_id, "echo no").json()["error"]
    command = refused[refused.index("clawdforge budget set") :].split()[1:]
    assert run(*command).strip() == theirs, "the line in the refusal can be pasted"
    assert app.turn(session_id, "echo yes").status_code == 200
    run("budget", "remove", theirs, code=4)
    run("budget", "remove", theirs, "--app", app.name)
    assert run("budgets", "--app", app.name) == ""
    mine = local.session()
    words = ("--session", mine[:8], "--period", "total", "--cost", "0.5", "--then", "ask", "--json")
    made = json.loads(run("budget", "set", *words))
    assert (made["scope"], made["id"], made["share_cost_usd"]) == ("session", mine, 0.025)
    (shown,) = json.loads(run("budgets", "--json"))
    assert shown == made
    run("budget", "remove", made["budget_id"])
    run("budget", "set", code=2)
    run("budget", "set", "--tokens", "1", "--token", "x", "--session", "y", code=2)


def test_the_disk_is_shown_by_app_form_and_session(run: Run, server: Server) -> None:
    token = run("token", "create", "storing").strip()
    app = server.client(token)
    app.post("/files", files={"file": ("a", b"x" * 2048)}).raise_for_status()
    session = app.post("/sessions", json={"agent": "claude"}).json()["session_id"]
    (line,) = [one for one in run("disk").splitlines() if one.startswith("storing ")]
    assert "20 GiB" in line
    assert "uploads 2 KiB" in line
    shown = run("disk", "storing")
    assert "█" in shown
    assert session in shown
    found = json.loads(run("disk", "storing", "--json"))
    assert found["apps"][0]["forms"]["uploads"] == 2048
    assert [one["session_id"] for one in found["sessions"]] == [session]
