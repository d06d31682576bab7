"""What agents ask of us over real pipes: files, terminals, permissions; and agents with ways of their own."""

import asyncio
from pathlib import Path

import pytest

from clawdforge.core.models.agents import Ask, Verdict
from clawdforge.drivers.processes.containment import Containment, probe
from clawdforge.wire.base import Json
from clawdforge.wire.errors import AgentStartFailed
from clawdforge.wire.event import EventType
from tests.needs import needs
from tests.unit.acp_bench import Bench, Notebook, first_allow, say, until

# An agent in a few lines: answers the start, and runs `on_prompt` of the test for each prompt.
FRAME = """
import json, os, sys, time
def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n"); sys.stdout.flush()
def update(kind, **more):
    send(method="session/update", params={"sessionId": "s1", "update": {"sessionUpdate": kind, **more}})
def say(text, kind="agent_message_chunk"):
    update(kind, content={"type": "text", "text": str(text)})
number = 0
def call(method, **params):
    global number
    number += 1
    send(id=number, method=method, params={"sessionId": "s1", **params})
    while True:
        answer = json.loads(sys.stdin.readline())
        if answer.get("id") == number and "method" not in answer:
            return answer.get("result", answer.get("error"))
abilities, opening = {}, {"sessionId": "s1"}
def on_load(params): return opening
def on_prompt(text): pass
%s
for line in sys.stdin:
    message = json.loads(line)
    method, params, mid = message.get("method"), message.get("params"), message.get("id")
    if method == "initialize": send(id=mid, result={"protocolVersion": 1, "agentCapabilities": abilities})
    elif method == "session/new": send(id=mid, result=opening)
    elif method in ("session/load", "session/resume"): send(id=mid, result=on_load(params))
    elif method == "session/prompt":
        on_prompt(params["prompt"][0]["text"])
        send(id=mid, result={"stopReason": "end_turn"})
"""


def program(source: str) -> str:
    return FRAME % source


@pytest.fixture(scope="module")
def containment() -> Containment:
    return probe("auto")


@pytest.fixture
def bench(tmp_path: Path, containment: Containment) -> Bench:
    return Bench(tmp_path, containment)


async def reject(_request: Ask) -> Verdict:
    return Verdict(option_id="reject")


async def test_files_of_the_workspace_are_read_and_written_by_leave(bench: Bench) -> None:
    async with bench.scripted() as agent:
        sink = await say(agent, "fs-write notes/a.txt hello there\nfs-read notes/a.txt")
        assert sink.texts() == ["wrote notes/a.txt", "hello there"]
        assert (bench.workspace / "notes/a.txt").read_text() == "hello there"
        assert [(asked.tool, asked.kind) for asked in sink.asks] == [
            ("fs/write_text_file", "edit"),
            ("fs/read_text_file", "read"),
        ]
        shown = sink.asks[0].request["toolCall"]["rawInput"]
        assert shown["path"] == str(bench.workspace / "notes/a.txt")
        assert shown["content"] == "hello there"


async def test_what_a_session_refuses_does_not_happen(bench: Bench) -> None:
    (bench.workspace / "a.txt").write_text("private")
    async with bench.scripted() as agent:
        script = "fs-write a.txt evil\nfs-read a.txt\nterminal touch made"
        sink = await say(agent, script, deciding=reject)
        assert len(sink.texts()) == 3
        assert all(text.startswith("error: -32003 ") for text in sink.texts())
        assert [asked.kind for asked in sink.asks] == ["edit", "read", "execute"]
    assert [path.name for path in bench.workspace.iterdir()] == ["a.txt"]
    assert (bench.workspace / "a.txt").read_text() == "private"


async def test_paths_outside_are_refused_before_anybody_is_asked(bench: Bench) -> None:
    (bench.data / "forge.db").write_text("all the sessions")
    (bench.workspace / "link").symlink_to(bench.data / "forge.db")
    async with bench.scripted() as agent:
        sink = await say(agent, "fs-read ../../forge.db\nfs-read link\nfs-write link x\nfs-read /etc/passwd")
        assert len(sink.texts()) == 4
        assert all("outside of the workspace" in text for text in sink.texts())
        assert sink.asks == []
    assert (bench.data / "forge.db").read_text() == "all the sessions"


async def test_a_terminal_runs_contained_and_tells_its_end(bench: Bench) -> None:
    async with bench.scripted() as agent:
        sink = await say(agent, "terminal echo out; echo err >&2; pwd; exit 3")
        assert sink.text() == f"exit=3 signal=None\nout\nerr\n{bench.workspace}\n"
        assert sink.asks[0].kind == "execute"
        assert (await say(agent, "terminal kill -9 $$")).text().startswith("exit=None signal=SIGKILL")
        assert (await say(agent, 'terminal echo "$HOME"')).text().splitlines()[1] == str(bench.home)
        assert (await say(agent, "terminal cat")).text() == "exit=0 signal=None\n", "its input is empty"


async def test_terminals_end_with_the_turn_that_is_cancelled(bench: Bench) -> None:
    async with bench.scripted() as agent:
        prompting = asyncio.create_task(agent.prompt("terminal touch up; sleep 300", Notebook()))
        await until((bench.workspace / "up").exists)
        idle = len(bench.processes())
        await agent.cancel()
        await prompting
        await until(lambda: len(bench.processes()) < idle)
        assert not any(b"sleep" in _command(pid) for pid in bench.processes())


async def test_terminals_end_with_the_agent(bench: Bench) -> None:
    async with bench.scripted() as agent:
        prompting = asyncio.create_task(agent.prompt("terminal touch up; sleep 300", Notebook()))
        await until((bench.workspace / "up").exists)
        await agent.close()
        assert bench.processes() == []
        async with asyncio.timeout(60):  # it may have come to an answer, or not
            await asyncio.gather(prompting, return_exceptions=True)


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


async def test_terminal_output_is_bounded_and_keeps_its_end(bench: Bench) -> None:
    source = """
def on_prompt(text):
    line = "python3 -c 'print(chr(233) * 3000000); print(1234567890)'"
    name = call("terminal/create", command=line, outputByteLimit=20)["terminalId"]
    say(call("terminal/wait_for_exit", terminalId=name))
    out = call("terminal/output", terminalId=name)
    say(json.dumps([out["truncated"], out["output"], out["exitStatus"]["exitCode"]]))
    say(call("terminal/release", terminalId=name))
    say(call("terminal/output", terminalId=name)["code"])
"""
    async with bench.program(program(source)) as agent:
        texts = (await say(agent, "go")).texts()
    assert texts[0] == "{'exitCode': 0, 'signal': None}"
    assert texts[1] == '[true, "' + "\\u00e9" * 4 + '\\n1234567890\\n", 0]'
    assert texts[2:] == ["{}", "-32002"]


async def test_a_terminal_can_be_watched_and_killed(bench: Bench) -> None:
    source = """
def on_prompt(text):
    env = [{"name": "WORD", "value": "a b"}]
    name = call("terminal/create", command="sh", args=["-c", 'echo "$WORD"; exec sleep 300'], env=env,
                cwd=os.path.join(os.getcwd(), "sub"))["terminalId"]
    while True:
        out = call("terminal/output", terminalId=name)
        if out["output"]: break
    say(json.dumps([out["output"], out.get("exitStatus")]))
    say(call("terminal/kill", terminalId=name))
    say(sorted(call("terminal/output", terminalId=name)))
    for bad in ({"command": 3}, {"command": "x", "args": "y"}, {"command": "x", "cwd": "/etc"},
                {"command": "x", "env": [{"name": "A=B", "value": ""}]}, {"command": "a\\0b"}):
        say(call("terminal/create", **bad)["code"])
    say(call("terminal/create", command="exit 4\\n")["terminalId"])
    say(call("terminal/wait_for_exit", terminalId="term_2")["exitCode"])
"""
    (bench.workspace / "sub").mkdir()
    async with bench.program(program(source)) as agent:
        texts = (await say(agent, "go")).texts()
    assert texts[:3] == ['["a b\\n", null]', "{}", "['exitStatus', 'output', 'truncated']"]
    assert texts[3:] == ["-32602"] * 5 + ["term_2", "4"]


async def test_a_request_of_any_size_is_no_work_for_the_event_loop(bench: Bench) -> None:
    """Each of these took the loop a second or more. A stall fails the test."""
    source = """
def on_prompt(text):
    path = "a/" * 400_000
    say(call("fs/read_text_file", path=path)["code"])
    say(call("fs/write_text_file", path=path, content="x")["code"])
    say(call("terminal/create", command="x", cwd=path)["code"])
    say(call("terminal/create", command="x", args=["a b"] * 150_000)["code"])
    say(call("terminal/create", command="x", args=["'" * 4_000_000])["code"])
    say(call("terminal/create", command="x", env=[{"name": "A", "value": "b"}] * 60_000)["code"])
    say(call("terminal/output", terminalId=["\u00e9\t" * 3_000_000])["code"])
    asked = {"title": ["\u00e9\t" * 3_000_000], "toolCallId": "t1"}
    say(call("session/request_permission", toolCall=asked, options=[])["outcome"]["outcome"])
"""
    async with bench.program(program(source)) as agent:
        sink = await say(agent, "go")
    assert sink.texts() == ["-32602"] * 6 + ["-32002", "cancelled"]
    assert [asked.tool for asked in sink.asks] == ["t1"]


async def test_more_terminals_than_allowed_are_refused(bench: Bench) -> None:
    source = """
def on_prompt(text):
    made = [call("terminal/create", command="exec sleep 300") for _ in range(33)]
    say(sum("terminalId" in m for m in made)); say(made[-1]["message"])
"""
    async with bench.program(program(source)) as agent:
        texts = (await say(agent, "go")).texts()
        assert texts[0] == "32"
        assert "release some" in texts[1]
    assert bench.processes() == []


async def test_a_background_child_does_not_hold_a_terminal_open(bench: Bench) -> None:
    async with bench.scripted() as agent, asyncio.timeout(60):
        sink = await say(agent, "terminal sleep 300 & echo done")
        assert sink.text().startswith("exit=0")
        assert "done" in sink.text()


async def test_updates_flow_while_somebody_decides(bench: Bench) -> None:
    source = """
def on_prompt(text):
    say("before")
    options = [{"optionId": "yes", "kind": "allow_once", "name": "Y"}]
    asking = {"sessionId": "s1", "toolCall": {"toolCallId": "t1"}, "options": options}
    send(id="p1", method="session/request_permission", params=asking)
    for n in range(100): say(n)
    say(json.loads(sys.stdin.readline())["result"]["outcome"])
"""
    enough = asyncio.Event()
    order: list[str] = []
    sink = Notebook()

    async def pace() -> None:
        order.append("update")
        if len(order) == 102:
            enough.set()

    async def deciding(request: Ask) -> Verdict:
        order.append("ask")
        await enough.wait()
        return first_allow(request)

    sink.pace, sink.deciding = pace, deciding
    async with bench.program(program(source)) as agent:
        await agent.prompt("go", sink)
    assert order[:3] == ["update", "ask", "update"]
    assert sink.texts() == ["before", *map(str, range(100)), "{'outcome': 'selected', 'optionId': 'yes'}"]
    assert sink.asks[0].tool == "t1"
    assert sink.asks[0].kind is None


async def test_an_unknown_request_is_kept_in_the_turn_and_answered_with_an_error(bench: Bench) -> None:
    source = "def on_prompt(text): say(call('elicitation/create', message='?')['code'])"
    async with bench.program(program(source)) as agent:
        sink = await say(agent, "go")
    assert sink.types() == [EventType.OTHER, EventType.TEXT, EventType.RESPONSE]
    assert sink.messages()[0]["method"] == "elicitation/create"
    assert sink.text() == "-32601"


async def test_an_agent_that_dies_of_a_load_is_started_again_with_a_new_session(bench: Bench) -> None:
    source = """
abilities = {"loadSession": True}
def on_load(params):
    print("database is locked", file=sys.stderr, flush=True)
    os._exit(9)
def on_prompt(text): say("fresh")
"""
    async with bench.program(program(source), agent_session_id="old") as agent:
        assert (agent.how, agent.agent_session_id, agent.remembered) == ("new", "s1", [])
        assert "exited with code 9; it said: database is locked" in str(agent.note)
        assert (await say(agent, "go")).text() == "fresh"
    assert bench.processes() == []


async def test_a_load_that_hangs_becomes_a_new_session(bench: Bench) -> None:
    source = "abilities = {'loadSession': True}\ndef on_load(params): time.sleep(300)"
    async with bench.program(program(source), {"start_timeout": 1.0}, agent_session_id="old") as agent:
        assert agent.how == "new"
        assert "did not answer session/load within 1 s" in str(agent.note)


async def test_a_replay_that_comes_late_is_swallowed_but_state_is_not(bench: Bench) -> None:
    source = """
abilities = {"loadSession": True}
def on_load(params):
    global late
    say("one", kind="user_message_chunk"); say("yes"); say("two", kind="user_message_chunk")
    update("available_commands_update", availableCommands=[])
    return None
def on_prompt(text): say("now")
import threading
threading.Timer(0.2, lambda: (say("late replay"), update("current_mode_update", currentModeId="x"))).start()
"""
    async with bench.program(program(source), agent_session_id="s1") as agent:
        assert agent.remembered == ["one", "two"]
        await until(lambda: EventType.MODE in bench.outside.types())
        assert (await say(agent, "go")).texts() == ["now"]
    assert bench.outside.types() == [EventType.COMMANDS, EventType.MODE]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("opening = {}", "without a sessionId"),
        ("opening = {'sessionId': 5}", "without a sessionId"),
        ("sys.stdin.readline(); send(id=1, result={'protocolVersion': 2}); time.sleep(300)", "version 2"),
        ("sys.stdin.readline(); send(id=1, error={'code': -1, 'message': 'no config'})", "no config"),
    ],
)
async def test_a_start_that_makes_no_sense_is_told(bench: Bench, source: str, words: str) -> None:
    with pytest.raises(AgentStartFailed, match=words):
        async with bench.program(program(source)):
            pass
    assert bench.processes() == []


@needs("bwrap")
async def test_an_agent_that_lacks_a_file_of_the_machine_is_told_how_it_gets_it(bench: Bench) -> None:
    with pytest.raises(AgentStartFailed, match=r"under `readable`.*clawdforge sandbox show"):
        async with bench.program("open('/root/nothing/model.bin')"):
            pass
    with pytest.raises(AgentStartFailed) as failed:
        async with bench.program("raise SystemExit('no key')"):
            pass
    assert "readable" not in str(failed.value)


async def test_an_agent_that_never_reads_cannot_hold_a_cancel(bench: Bench) -> None:
    source = """
for _ in range(2):
    send(id=json.loads(sys.stdin.readline())["id"], result={"protocolVersion": 1, "sessionId": "s1"})
time.sleep(300)
"""
    async with bench.program(program(source), {"reply_timeout": 0.3}) as agent:
        prompting = asyncio.create_task(agent.prompt("x" * 1_000_000, Notebook()))
        waiting = agent._process.stdin.transport
        await until(lambda: waiting.get_write_buffer_size() > 500_000)
        async with asyncio.timeout(60):
            await agent.cancel()
        prompting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await prompting
    assert bench.processes() == []


async def test_the_largest_message_and_answer_pass(bench: Bench) -> None:
    source = "def on_prompt(text): say(len(text)); say('y' * 20_000_000)"
    async with bench.program(program(source)) as agent:
        sink = await say(agent, "x" * 5_000_000)
    assert sink.texts()[0] == "5000000"
    assert len(sink.texts()[1]) == 20_000_000


ODD = """
def odd():
    for params in (None, [], 5, {"update": 5}, {"update": {"sessionUpdate": {}}}, {"update": {}}):
        send(method="session/update", params=params)
    send(method="session/update")
"""


async def test_params_of_any_kind_do_no_harm(bench: Bench) -> None:
    source = """
abilities = {"loadSession": True}
def on_load(params):
    odd()
    return {"modes": 5, "configOptions": [5, {"category": []}], "models": []}
def on_prompt(text):
    odd()
    send(id=50, method="session/request_permission", params={"toolCall": 5, "options": [1, {}]})
    say(json.loads(sys.stdin.readline())["result"]["outcome"]["outcome"])
"""
    async with bench.program(
        program(ODD + source), agent_session_id="s1", model="m", plan_mode=True
    ) as agent:
        assert (agent.how, agent.remembered, agent.note) == ("loaded", [], "it has no plan mode")
        sink = await say(agent, "go")
    assert sink.types() == [EventType.OTHER] * 7 + [EventType.TEXT, EventType.RESPONSE]
    assert sink.text() == "cancelled"
    empty: Json = {}
    assert sink.asks[0].options == (empty,)
