"""The scripted agent's misdeeds, its demo face, its start, and an independent client's view of it."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import acp
import psutil
import pytest
from acp.schema import AllowedOutcome, RequestPermissionResponse

from clawdforge import scripted as agent
from clawdforge.scripted.options import FLAGS
from clawdforge.scripted.program import commands, help_text
from tests.unit.scripted import WAIT, Agent, Launch, Message, kinds, launching, said, until, updates

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "scripted-agent.md"


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launch]:
    with launching(tmp_path) as run:
        yield run


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def drain(one: Agent) -> list[bytes]:
    """Return the lines until the agent closed its stdout."""
    lines = []
    while line := one.line():
        lines.append(line)
    return lines


@pytest.mark.parametrize(
    ("script", "code", "lines"),
    [("crash", 1, 0), ("crash 7", 7, 0), ("crash-after 5", 1, 5), ("kill-self", -signal.SIGKILL, 0)],
)
def test_it_dies_in_the_middle_of_a_turn(launch: Launch, script: str, code: int, lines: int) -> None:
    one = launch().open()
    one.start(script)
    assert len(drain(one)) == lines
    assert one.process.wait(WAIT) == code


def test_it_closes_stdout_and_lives_on(launch: Launch) -> None:
    one = launch().open()
    one.start("close-stdout")
    assert drain(one) == []
    assert one.process.poll() is None
    assert one.hang_up() == 0


def test_it_garbles_its_lines(launch: Launch) -> None:
    one = launch().open()
    number = one.start("garbage 3\nbad-utf8\nsurrogate\nraw {]\nwrong-id\ndup-response")
    lines = [one.line() for _ in range(9)]
    for line in (*lines[:3], lines[5]):
        with pytest.raises(json.JSONDecodeError):
            json.loads(line)
    with pytest.raises(UnicodeDecodeError):
        lines[3].decode()
    assert rb"\ud800" in lines[4]
    assert [json.loads(line)["id"] for line in lines[6:]] == [987654321, number, number]


def test_a_huge_line_arrives_whole(launch: Launch) -> None:
    text = launch().open().say("bytes 5000000")
    assert len(text) == 5_000_000
    assert set(text) == {"x"}


def test_odd_characters_survive(launch: Launch) -> None:
    text = launch().open().say("unicode")
    assert "\u2028" in text
    assert "\0" in text
    assert "\U0001f469\u200d\U0001f680" in text


def test_it_floods_stderr(launch: Launch) -> None:
    one = launch().open()
    one.prompt("stderr 300000")
    one.hang_up()
    assert len(one.stderr()) == 300_000


def test_hang_hard_ends_only_by_kill(launch: Launch) -> None:
    one = launch().open()
    one.start("hang-hard")
    assert said([one.message()]) == "deaf"
    one.cancel()
    one.process.send_signal(signal.SIGTERM)
    one.stop_writing()
    with pytest.raises(subprocess.TimeoutExpired):
        one.process.wait(0.3)


@pytest.mark.parametrize("flags", [(), ("--ignore-term",)])
def test_term_and_hanging_up_end_it_unless_told_otherwise(launch: Launch, flags: tuple[str, ...]) -> None:
    one = launch(*flags).open()
    one.process.send_signal(signal.SIGTERM)
    if not flags:
        assert one.process.wait(WAIT) == -signal.SIGTERM
        assert launch().open().hang_up() == 0
        return
    assert one.say("alive") == "alive"
    one.stop_writing()
    with pytest.raises(subprocess.TimeoutExpired):
        one.process.wait(0.3)


def test_a_daemon_leaves_the_tree_and_shows_its_life(launch: Launch, tmp_path: Path) -> None:
    one = launch().open()
    pid = int(one.say("daemon life.log"))
    try:
        log = tmp_path / "life.log"
        until(lambda: log.exists() and log.stat().st_size > 0)
        stray = psutil.Process(pid)
        assert stray.ppid() != one.process.pid
        assert os.getsid(pid) != os.getsid(one.process.pid)
        assert stray.environ()["TAG"] == "seen"
        one.kill()
        size = log.stat().st_size
        until(lambda: log.stat().st_size > size)
    finally:
        psutil.Process(pid).kill()


def test_children_stay_with_their_parent_and_hold_the_pipe(launch: Launch) -> None:
    one = launch().open()
    pids = [int(word) for word in one.say("children 2").split()]
    try:
        assert {psutil.Process(pid).ppid() for pid in pids} == {one.process.pid}
        one.kill()
        assert not any(gone(pid) for pid in pids)
    finally:
        for pid in pids:
            psutil.Process(pid).kill()


def test_a_late_update_follows_the_answer(launch: Launch) -> None:
    one = launch("--late-updates").open()
    assert one.say("hi") == "hi"
    assert said([one.message()]) == "late"


def test_bad_starts(launch: Launch) -> None:
    early = launch("--exit-at-start")
    assert early.process.wait(WAIT) == 3
    assert b"told to exit" in early.stderr()
    noisy = launch("--garbage-at-start")
    number = noisy.post("initialize", protocolVersion=1)
    lines = [noisy.line() for _ in range(6)]
    assert json.loads(lines[-1])["id"] == number
    silent = launch("--hang-at-start")
    silent.post("initialize", protocolVersion=1)
    with pytest.raises(subprocess.TimeoutExpired):
        silent.process.wait(0.3)
    assert launch("--nonsense").process.wait(WAIT) == 2


def test_a_login_may_be_demanded(launch: Launch) -> None:
    one = launch("--auth-required")
    assert one.call("initialize", protocolVersion=1)["authMethods"][0]["id"] == "scripted"
    assert one.call("session/new", cwd="/tmp", mcpServers=[])["code"] == -32000
    one.call("authenticate", methodId="scripted")
    assert one.open().say("in") == "in"


def test_bad_lines_from_the_client_are_refused(launch: Launch) -> None:
    one = launch().open()
    assert one.process.stdin is not None
    one.process.stdin.write(b"nonsense\n[1]\n")
    one.process.stdin.flush()
    assert [one.message()["error"]["code"] for _ in range(2)] == [-32700, -32600]
    assert one.say("fine") == "fine"


def test_it_runs_as_a_module_and_alone_as_a_copied_folder(launch: Launch, tmp_path: Path) -> None:
    module = launch(argv=[sys.executable, "-m", "clawdforge.scripted"])
    assert module.open().say("hi") == "hi"
    copied = tmp_path / "elsewhere" / "agent"
    shutil.copytree(Path(agent.path()).parent, copied)
    alone = launch(argv=[sys.executable, "-I", "-S", str(copied / "__main__.py")])
    assert alone.open().say("hi") == "hi"


def test_the_demo_greets_remembers_and_shows_what_it_can(launch: Launch) -> None:
    one = launch("--demo").open()
    hello, answer = one.prompt("Hello there")
    assert len(hello) > 20
    assert "no key" in said(hello)
    assert answer["result"]["stopReason"] == "end_turn"
    assert "message 2" in one.say("I like red bicycles")
    one.kill()
    again = launch("--demo")
    again.load(one.session)
    assert "1. Hello there\n2. I like red bicycles" in again.say("What did I say?")
    assert kinds(again.prompt("show me a tool")[0])[:3] == [
        "tool_call",
        "tool_call_update",
        "tool_call_update",
    ]
    shown = [
        update for update in updates(again.prompt("a plan, please")[0]) if update["sessionUpdate"] == "plan"
    ]
    assert [entry["status"] for entry in shown[-1]["entries"]] == ["completed"] * 3
    assert "/chunks 20" in again.say("help")
    assert again.say("/echo a\n/echo b") == "ab"
    number = again.start("hello")
    again.message()
    again.cancel()
    assert again.until(number)[1]["result"]["stopReason"] == "cancelled"


def test_help_and_the_page_name_every_flag_and_command() -> None:
    page, shown = PAGE.read_text(), help_text()
    for flag, _ in FLAGS:
        assert f"`{flag}`" in page
        assert flag in shown
    for command in commands().values():
        written = f"{command.name} {command.usage}".strip()
        assert f"`{written}`" in page
        assert written in shown


class Watcher:
    """What the official package lets a client see."""

    def __init__(self) -> None:
        self.seen: list[Message] = []
        self.heard_on = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        assert session_id
        self.seen.append(update.model_dump(by_alias=True, exclude_none=True))
        if self.seen[-1].get("content") == {"type": "text", "text": "on"}:
            self.heard_on.set()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> RequestPermissionResponse:
        assert session_id
        assert tool_call.title == "Wave"
        return RequestPermissionResponse(
            outcome=AllowedOutcome(outcome="selected", option_id=options[1].option_id)
        )

    def on_connect(self, conn: acp.Agent) -> None:
        """Nothing is needed of the connection."""


async def test_the_official_client_understands_it(tmp_path: Path) -> None:
    watcher = Watcher()
    program, *arguments = agent.command()
    async with acp.spawn_agent_process(
        cast("acp.Client", watcher),
        program,
        *arguments,
        env={"HOME": str(tmp_path)},
        transport_kwargs={"stderr": asyncio.subprocess.DEVNULL},
    ) as (connection, _):
        assert (await connection.initialize(protocol_version=1)).protocol_version == 1
        made = await connection.new_session(cwd=str(tmp_path), mcp_servers=[])
        session = made.session_id
        assert made.modes is not None
        assert made.modes.current_mode_id == "default"
        script = "think hm\ntool read\nplan a|b\nusage-update 1 2\nmode plan\nask Wave\nchunks 100"
        answer = await connection.prompt(session_id=session, prompt=[acp.text_block(script)])
        assert answer.stop_reason == "end_turn"
        assert answer.usage is not None
        assert answer.usage.total_tokens > 0
        assert {update["sessionUpdate"] for update in watcher.seen} >= {
            "agent_thought_chunk", "tool_call", "tool_call_update", "plan", "usage_update",
            "current_mode_update", "agent_message_chunk", "available_commands_update",
        }  # fmt: skip
        texts = [u["content"]["text"] for u in watcher.seen if u["sessionUpdate"] == "agent_message_chunk"]
        assert texts[0] == "permission: allow_always"
        assert len(texts) == 101
        running = asyncio.ensure_future(
            connection.prompt(session_id=session, prompt=[acp.text_block("echo on\nhang")])
        )
        async with asyncio.timeout(WAIT):
            await watcher.heard_on.wait()
            await connection.cancel(session_id=session)
            assert (await running).stop_reason == "cancelled"
        assert (await connection.list_sessions()).sessions[0].session_id == session
        await connection.close_session(session_id=session)
        watcher.seen.clear()
        await connection.load_session(cwd=str(tmp_path), session_id=session, mcp_servers=[])
        assert [update["sessionUpdate"] for update in watcher.seen] == [
            "user_message_chunk",
            "agent_message_chunk",
        ] * 2
