"""The command line as it was promised, clause by clause (S4-70 to S4-83, X-30), with real processes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.api.harness import App, until
from tests.cli.kit import Cli

pytestmark = pytest.mark.slow


def new(cli: Cli, prompt: str = "echo one", *args: str) -> str:
    return str(cli.json("-p", "--output-format", "json", *args, prompt)["session_id"])


def test_s4_70_sessions_list_shows_the_last_activity_first(cli: Cli) -> None:
    first, second = new(cli), new(cli)
    assert [line.split("\t")[0] for line in cli("sessions", "list").stdout.splitlines()] == [second, first]
    cli("send", first, "echo again")
    assert [row["session_id"] for row in cli.json("sessions", "list", "--json")] == [first, second]


def test_s4_70_the_list_is_of_this_project_unless_all_are_asked_for(cli: Cli, tmp_path: Path) -> None:
    mine = new(cli)
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    (other / "deep").mkdir()
    theirs = cli.json("-p", "--output-format", "json", "echo x", cwd=other / "deep")["session_id"]
    assert mine in cli("sessions", "list").stdout
    assert theirs not in cli("sessions", "list").stdout
    assert {mine, theirs} <= {row["session_id"] for row in cli.json("sessions", "list", "--all", "--json")}
    listed = cli.json("sessions", "list", "--json", cwd=other)
    assert [(row["session_id"], row["cwd"], row["retention"]) for row in listed] == [
        (theirs, str(other), "keep")
    ]
    assert listed[0]["project_key"]


def test_s4_71_show_and_s4_83_archived_messages_with_all(cli: Cli) -> None:
    """S4-71, S4-83."""
    session = new(cli, "echo before the clear")
    cli("-s", session, stdin="/clear\necho after it\n")
    shown = cli("sessions", "show", session).stdout
    assert "after it" in shown
    assert "before the clear" not in shown.split("state")[1]
    everything = cli("sessions", "show", session, "--all").stdout
    assert "before the clear" in everything
    assert "(archived)" in everything
    row = cli.json("sessions", "show", session, "--json")
    assert row["state"] == "active"
    assert row["context"] == 2


def test_s4_72_resume(cli: Cli) -> None:
    """S4-72."""
    session = new(cli)
    done = cli("sessions", "resume", session[:8], stdin="recall\n")
    assert '["echo one"]' in done.stdout
    assert cli.json("sessions", "show", session, "--json")["turn_count"] == 2


def test_s4_73_end_and_s4_76_an_ended_session_is_refused(cli: Cli) -> None:
    """S4-73, S4-76."""
    session = new(cli)
    cli("sessions", "end", session)
    assert cli.json("sessions", "show", session, "--json")["state"] == "ended"
    cli("sessions", "end", session)
    for words in (["-s", session, "-p", "x"], ["--session", session], ["sessions", "resume", session]):
        assert "has ended" in cli(*words, code=1).stderr
    assert "one" in cli("sessions", "resume", "--reopen", session, stdin="recall\n").stdout


def test_s4_74_prefixes_of_six_or_more(cli: Cli) -> None:
    """S4-74."""
    session = new(cli)
    for length in (6, 7, 13, 36):
        assert cli.json("sessions", "show", session[:length], "--json")["session_id"] == session
    assert "6 characters" in cli("sessions", "show", session[:5], code=4).stderr


def test_s4_75_an_ambiguous_prefix_is_refused_and_the_candidates_are_listed(cli: Cli) -> None:
    """S4-75."""
    first = new(cli)
    ids = [first, _twin(cli, first)]
    done = cli("sessions", "show", ids[0][:6], code=4)
    assert "matches several sessions" in done.stderr
    assert all(one in done.stderr for one in ids)
    assert done.stdout == ""
    cli("-s", ids[0][:6], "-p", "x", code=4)
    assert cli.json("sessions", "show", ids[0], "--json")["session_id"] == ids[0]


def _twin(cli: Cli, session: str) -> str:
    """A second session whose id begins alike: by chance that takes millions."""
    twin = session[:6] + session[6:].translate(str.maketrans("0123456789abcdef", "123456789abcdef0"))
    database = apsw.Connection(str(cli.data_dir / "forge.db"))
    database.set_busy_timeout(10_000)
    names = [row[1] for row in database.execute("PRAGMA table_info(sessions)")]
    values = ["?" if name == "session_id" else name for name in names]
    copy = f"({', '.join(names)}) SELECT {', '.join(values)} FROM sessions WHERE session_id = ?"  # noqa: S608 - columns
    database.execute(f"INSERT INTO sessions {copy}", (twin, session))
    database.close()
    return twin


def test_s4_76_a_typo_does_not_open_an_empty_session(cli: Cli) -> None:
    for words in (["-s", "deadbeef"], ["-r", "deadbeef"], ["--session", "no such title", "-p", "x"]):
        done = cli(*words, code=4)
        assert "sessions list" in done.stderr
    assert cli("sessions", "list").stdout == ""


def test_s4_76_without_session_a_new_row_with_its_project(cli: Cli) -> None:
    cli(stdin="echo hello\n")
    cli(stdin="echo hello\n")
    rows = cli.json("sessions", "list", "--json")
    assert len(rows) == 2
    assert len({row["project_key"] for row in rows}) == 1
    assert {row["permission_mode"] for row in rows} == {"ask"}


def test_x_30_the_alias(cli: Cli) -> None:
    alias = Path(sys.executable).parent / "mydeepagent"
    if not alias.exists():
        pytest.skip("the package is not installed here")
    session = new(cli)
    done = subprocess.run(
        [alias, "sessions", "list"],
        env=dict(cli.env),
        cwd=cli.project,
        capture_output=True,
        text=True,
        check=True,
    )
    assert session in done.stdout


def test_s4_81_rows_title_and_totals(cli: Cli, local: App) -> None:
    """S4-81: the prompt is a row before the agent has answered, and the answer is one after it."""
    cli("-p", "echo the first words")
    session = cli.json("sessions", "list", "--json")[0]["session_id"]
    assert cli("send", session, "--detach", "hang").stdout == "2\n"
    row = until(
        lambda: _running(cli.json("sessions", "show", session, "--json")),
        "the second turn's start",
        seconds=20,
    )
    assert [message["role"] for message in row["messages"]] == ["user", "assistant", "user"]
    assert row["messages"][-1]["pending"]
    assert row["title"] == "echo the first words"
    assert row["last_turn_at"]
    cli("stop", session)
    used = cli.json("usage", session, "--json")
    assert used["input_tokens"] > 0
    assert used["output_tokens"] > 0
    assert local.http.get(f"/sessions/{session}/usage").json()["total_tokens"] == used["total_tokens"]


def _running(row: dict[str, Any]) -> dict[str, Any] | None:
    return row if row["running_turn"] == 2 and row["message_count"] == 3 else None


def test_s4_80_one_agent_with_its_memory_for_the_whole_conversation(cli: Cli) -> None:
    """S4-80."""
    said = cli(stdin="echo one\necho two\nrecall\n").stdout
    assert '["echo one", "echo two"]' in said
    (row,) = cli.json("sessions", "list", "--json")
    log = cli("tail", row["session_id"], "--after", "0", "--json").stdout.splitlines()
    started = [event["how"] for event in map(json.loads, log) if event["type"] == "context.started"]
    assert started == ["new"]


@pytest.mark.parametrize("change", ["/model other-model", "/agent demo", "/clear"])
def test_s4_82_a_fresh_context_in_the_same_session(cli: Cli, change: str) -> None:
    """S4-82."""
    cli(stdin=f"echo one\n{change}\necho two\n")
    (row,) = cli.json("sessions", "list", "--json")
    assert (row["context"], row["turn_count"]) == (2, 2)


def test_s4_82_each_model_is_told_the_conversation(cli: Cli) -> None:
    """S4-82."""
    said = cli(stdin="echo the blue door\n/model m1\necho on\n/model m2\necho still\nrecall all\n").stdout
    assert "echo the blue door" in said, "only the agent repeats a prompt"
    (row,) = cli.json("sessions", "list", "--json")
    assert (row["context"], row["model"]) == (3, "m2")
