"""The conversation as a person types it: a real server, a real agent, a real pseudo-terminal."""

import json
import os
import re
import signal
import stat
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from clawdforge import Forge
from clawdforge.cli.repl.quiet import LOCAL_FLAGS
from clawdforge.wire.local import LOCK_FILE
from tests.api.harness import App, Server, until
from tests.cli.kit import Cli
from tests.cli.terminal import CTRL_C, CTRL_D, CTRL_E, CTRL_R, CTRL_X, DOWN, ENTER, ESC

pytestmark = pytest.mark.slow


def test_stream_tools_permission_and_costs(cli: Cli) -> None:
    terminal = cli.talk()
    terminal.send("echo # A title")
    terminal.expect(r"A title.*\d+ in · ~?\d+ out")
    terminal.send("tool look-around")
    terminal.expect("✓ look-around")
    terminal.send("ask Write a file edit")
    terminal.expect(r"\? Write a file.*3 refuse")
    terminal.type(DOWN)
    terminal.expect("▸ 1 allow once")
    terminal.type(ENTER)
    terminal.expect("allowed once.*permission: allow_once")
    terminal.send("ask Again edit")
    terminal.expect(r"\? Again.*allow always, in this session: Again \(edit\)")
    terminal.type("3")
    terminal.expect("▸ 3 refuse")
    terminal.type(ENTER)
    terminal.expect("refused.*permission: reject_once")
    terminal.type(CTRL_D)
    assert terminal.wait() == 0
    assert "session kept" in terminal.text
    assert {"green", "red"} <= terminal.colours


def test_a_shell_command_and_an_editor(server: Server, make: Callable[..., Cli], tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho "echo written elsewhere" > "$1"\n')
    editor.chmod(0o755)
    terminal = make(server.data_dir, EDITOR=str(editor), VISUAL=str(editor)).talk()
    terminal.send("!echo from the shell; exit 3")
    terminal.expect("\nfrom the shell\n.*ended with 3")
    terminal.type(CTRL_X + CTRL_E)
    terminal.expect("> echo written elsewhere")
    terminal.type(ENTER)
    terminal.expect("\nwritten elsewhere\n")


def test_the_line_stands_right_above_the_bar(cli: Cli) -> None:
    """Rows for a list of words are kept free only where there may be one."""
    terminal = cli.terminal(tells=True)
    terminal.expect(r"\n>\n.*/help$")
    for _ in range(3):  # until the screen is full
        terminal.send("/help")
        terminal.expect(r"> /help\n.*/help.*\n>\n.*/help$")
    terminal.type("hello")
    terminal.expect(r"\n> hello\n[^\n]*/help")
    terminal.type(CTRL_C)
    terminal.type("/mod")
    terminal.expect(r"> /mod\n +/model")


def test_ctrl_c_leaves_the_search_in_the_history(cli: Cli) -> None:
    terminal = cli.talk()
    terminal.send("echo apples")
    terminal.expect(r"apples.*out")
    terminal.type(CTRL_R + "appl")
    terminal.expect("I-search backward: appl")
    terminal.type(CTRL_C)
    terminal.expect(r"\n>$")
    terminal.send("echo pears")
    terminal.expect(r"> echo pears\n.*pears")
    terminal.expect(r"\n>$")
    terminal.type(CTRL_R + "appl")
    terminal.expect("I-search backward: appl")
    terminal.type(ENTER)  # takes what was found into the line
    terminal.expect(r"> echo apples$")
    terminal.type(ENTER)
    terminal.expect(r"pears.*> echo apples\n.*apples.*out")


def test_words_typed_while_the_agent_asks_decide_nothing(cli: Cli) -> None:
    terminal = cli.talk()
    terminal.send("ask Delete everything execute")
    terminal.expect(r"\? Delete everything.*3 refuse")
    terminal.type(ENTER)
    terminal.send("echo yes, and always do as you please")
    terminal.expect("1 queued")
    assert "allowed" not in terminal.text
    terminal.type("3" + ENTER)
    terminal.expect("refused.*yes, and always do as you please")


def test_a_long_answer_is_streamed_before_its_end_and_whole_after_it(cli: Cli) -> None:
    terminal = cli.talk()
    terminal.send("chunks 30 8 20\nsleep 60".replace("\n", "\\\r"))
    terminal.expect(r"30\.+")
    assert "cancelled" not in terminal.text
    terminal.type(CTRL_C)
    terminal.expect("cancelled; the answer so far is kept")
    assert " ".join(f"{number}".ljust(7, ".") for number in range(1, 12)) in terminal.text.replace("\n", "")
    terminal.type(CTRL_C)
    terminal.expect("Ctrl-D leaves")


def test_the_width_is_that_of_the_terminal(server: Server, make: Callable[..., Cli]) -> None:
    """Programs with a line to edit, such as Python itself, leave COLUMNS to their children."""
    terminal = make(server.data_dir, COLUMNS="20", LINES="5").talk()
    terminal.send("chunks 11 8\\")
    terminal.send("sleep 60")
    line = re.escape(" ".join(f"{number}".ljust(7, ".") for number in range(1, 12)))
    terminal.expect(line)
    terminal.type(CTRL_C)
    terminal.expect(f"{line}\n.*cancelled;")


def test_typing_while_it_runs_queues(cli: Cli, local: App) -> None:
    terminal = cli.talk()
    terminal.send("echo first\\")
    terminal.send("sleep 60")
    until(lambda: row(cli)["running_turn"], "the turn")
    terminal.send("echo second")
    terminal.send("echo third")
    terminal.expect("2 queued")
    turns = local.http.get(f"/sessions/{row(cli)['session_id']}/turns").json()["turns"]
    assert [turn["state"] for turn in turns] == ["running", "queued", "queued"]
    terminal.type(CTRL_C)
    terminal.expect("first.*cancelled;.*second.*out.*third.*out")


def test_a_stop_is_not_lost_when_more_is_typed_or_the_person_leaves(cli: Cli) -> None:
    terminal = cli.talk()
    for word, more in (("first", "echo went on" + ENTER), ("second", CTRL_D)):
        terminal.send(f"echo {word} work\\")  # not the same words again: those are on the screen already
        terminal.send("sleep 60")
        terminal.expect(rf"\n{word} work\n>$")
        terminal.type(CTRL_C + more)
        until(lambda: row(cli)["running_turn"] is None, "the turn's end")
    assert terminal.wait() == 0
    assert re.search("cancelled;.*\nwent on\n", terminal.text, re.DOTALL)


def test_ctrl_c_as_a_signal_between_two_lines_means_the_same(alone: Cli) -> None:
    terminal = alone.talk()
    terminal.send("echo at work\\")
    terminal.send("sleep 60")
    terminal.expect(r"\nat work\n>$")
    os.kill(terminal.process.pid, signal.SIGINT)
    terminal.expect("cancelled;")
    os.kill(terminal.process.pid, signal.SIGINT)
    terminal.expect("nothing is running")
    server = psutil.Process(json.loads((alone.data_dir / LOCK_FILE).read_text())["pid"])
    server.suspend()
    try:
        terminal.send("echo never mind")
        terminal.expect_no_line()
        os.kill(terminal.process.pid, signal.SIGINT)
        terminal.expect(r"no longer waiting.*\n>$")
    finally:
        server.resume()
    terminal.send("echo still here")
    terminal.expect("\nstill here\n")
    terminal.type(CTRL_D)
    assert terminal.wait() == 0


@pytest.mark.parametrize("leave", [CTRL_D, signal.SIGTERM])
def test_keys_are_shown_once_and_the_terminal_is_left_as_it_was(
    alone: Cli, leave: str | signal.Signals
) -> None:
    """Whatever is typed while there is no line to type in waits for the next one."""
    terminal = alone.terminal()
    before = terminal.modes
    terminal.expect(r"\n>$")
    server = psutil.Process(json.loads((alone.data_dir / LOCK_FILE).read_text())["pid"])
    server.suspend()
    try:
        terminal.send("echo first")
        terminal.expect_no_line()
        assert not terminal.modes[LOCAL_FLAGS] & termios.ECHO
        terminal.type("echo typed early")
    finally:
        server.resume()
    terminal.expect(r"\nfirst\n.*> echo typed early$")
    assert terminal.text.count("typed early") == 1
    if isinstance(leave, str):
        terminal.type(CTRL_C + leave)
        assert terminal.wait() == 0
    else:
        terminal.process.send_signal(leave)
        assert terminal.wait() == 128 + leave
        assert "Traceback" not in terminal.text
    assert terminal.modes == before


def test_a_picture_behind_an_at_sign_goes_along(cli: Cli, local: App) -> None:
    (cli.project / "shot.png").write_bytes(b"\x89PNG" * 1024)
    terminal = cli.talk()
    terminal.send("echo look at @shot.png")
    terminal.expect(r"attached shot\.png \(4 KiB\).*look at @shot\.png.* out")
    turns = local.http.get(f"/sessions/{row(cli)['session_id']}/turns").json()["turns"]
    assert len(turns[0]["files"]) == 1


def test_esc_esc_rewinds_and_puts_the_words_back(cli: Cli) -> None:
    terminal = cli.talk()
    terminal.send("echo keep this")
    terminal.expect("keep this\n.*out")
    terminal.send("echo a slip")
    terminal.expect("\na slip\n.*out")
    terminal.type(ESC + ESC)
    terminal.expect(r"undone: one turn.*> echo a slip$")
    terminal.type("\x7f" * len("a slip") + "better" + ENTER)
    terminal.expect(r"\nbetter\n")
    terminal.send("recall")
    terminal.expect(r'\["echo keep this", "echo better"\]')


def test_multi_line_history_completion_and_commands(cli: Cli) -> None:
    terminal = cli.talk()
    terminal.type("echo one" + ESC + ENTER + "echo two" + ENTER)
    terminal.expect(r"onetwo\n.* s\n>")
    terminal.type("/sta")
    terminal.expect("/status +Show the session")
    terminal.type("\t")
    terminal.expect("> /status\n")
    terminal.type(ENTER)
    terminal.expect("permission_mode +ask.*kept +until you delete it")
    (cli.project / "notes.txt").write_text("x")
    terminal.type("echo @no")
    terminal.expect("\n +notes.txt")
    terminal.type("\t")
    terminal.expect("> echo @notes.txt\n")
    terminal.type(ENTER)
    terminal.expect("\n@notes.txt\n")
    terminal.send("/permisions")
    terminal.expect("did you mean /permissions")
    terminal.send("/rename our talk")
    terminal.expect("changed: title our talk")
    terminal.send("/fork the other way")
    terminal.expect("continuing in")
    terminal.send("recall")
    terminal.expect(r'\["echo one.*" *\].*out')
    terminal.send("/undo")
    terminal.expect("undone")
    terminal.send("/redo")
    terminal.expect("brought back")
    terminal.send("/usage")
    terminal.expect("reported by the agent")
    terminal.send("/export out.md")
    terminal.expect("written to out.md")
    terminal.send("/exit")
    assert terminal.wait() == 0
    assert "notes.txt" in (cli.project / "out.md").read_text()
    history = cli.data_dir / "repl_history"
    assert "+/rename our talk" in history.read_text()
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    titles = {one["title"] for one in cli.json("sessions", "list", "--json")}
    assert titles == {"our talk", "the other way"}


def test_the_server_is_killed_in_mid_answer_and_comes_back(alone: Cli) -> None:
    terminal = alone.talk()
    terminal.send("chunks 40 8 50")
    terminal.expect(r"5\.+ ")
    psutil.Process(json.loads((alone.data_dir / LOCK_FILE).read_text())["pid"]).kill()
    terminal.send("/usage")  # held until there is somebody to ask
    terminal.expect("lost the server.*the server is back", seconds=60)
    terminal.expect("interrupted: the server stopped")
    terminal.expect("reported by the agent")
    assert "1...... 2...... 3...... " in terminal.text
    terminal.send("/retry echo and here we are")
    terminal.expect("\nand here we are\n")
    events = [
        json.loads(line)
        for line in alone("tail", row(alone)["session_id"], "--after", "0", "--json").stdout.splitlines()
    ]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))


def test_begun_here_continued_elsewhere_resumed_here_whole(cli: Cli, server: Server, local: App) -> None:
    """S4-01."""
    terminal = cli.talk()
    terminal.send("echo begun in the terminal")
    terminal.expect("\nbegun in the terminal\n.*out")
    session = row(cli)["session_id"]
    assert local.turn(session, "echo over HTTP").status_code == 200
    terminal.expect("> echo over HTTP\n  from another terminal or program\nover HTTP\n")
    with Forge(server.url, local.token) as forge:
        assert forge.attach(session).turn("echo in the SDK").text() == "in the SDK"
    terminal.expect("> echo in the SDK\n  from another terminal or program\nin the SDK\n")
    terminal.type(CTRL_D)
    assert terminal.wait() == 0
    again = cli.talk("-r", session[:8])
    for words in ("begun in the terminal", "over HTTP", "in the SDK"):
        again.expect(f"> echo {words}\n{words}\n")
    again.send("recall")
    again.expect(r'\["echo begun in the terminal", "echo over HTTP", "echo in the SDK"\]')


def test_a_running_turn_is_taken_up_with_what_was_said(cli: Cli) -> None:
    session = cli.json("-p", "--output-format", "json", "echo x")["session_id"]
    cli("send", session, "--detach", "chunks 10 8\nsleep 60")
    until(lambda: "10....." in cli("tail", session, "--json").stdout, "the words")
    terminal = cli.talk("-s", session)
    terminal.expect(r"> chunks 10 8\n.*1\.+ 2\.+ .*10\.+")
    terminal.type(CTRL_C)
    terminal.expect("cancelled;")


def test_a_list_to_choose_from(cli: Cli) -> None:
    first = cli.json("-p", "-n", "the first", "--output-format", "json", "echo 1")["session_id"]
    cli("-p", "-n", "the second", "echo 2")
    terminal = cli.terminal("-r")
    terminal.expect("Which session.*the second.*the first")
    terminal.type("\x1b[B" + ENTER)
    terminal.expect(f"session {first[:8]}")


def test_a_pipe_has_no_colour_and_no_noise(cli: Cli) -> None:
    done = cli(stdin="echo hello\\\necho there\n\nask May I edit\ny\n/model\n/exit\necho never\n")
    assert done.stdout == "hellothere\npermission: allow_once\nmodel: the default of the agent\n"
    assert "\x1b" not in done.stdout + done.stderr


def test_no_color(server: Server, cli: Cli) -> None:
    assert server.url
    plain = Cli(cli.data_dir, cli.project, {**cli.env, "NO_COLOR": "1"}, cli.terminals)
    terminal = plain.talk()
    terminal.send("tool look")
    terminal.expect("✓ look.*out")
    assert terminal.colours <= {"default"}


def row(cli: Cli) -> dict[str, Any]:
    found: list[dict[str, Any]] = cli.json("sessions", "list", "--json")
    return found[0]
