"""The JSON-RPC connection, over the pipes of real processes."""

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from clawdforge.core.pacing.computing import Computing, Result
from clawdforge.core.pacing.loop_turns import LoopTurns
from clawdforge.core.pacing.pace import Pace
from clawdforge.drivers.acp.stdio import READ_BYTES
from clawdforge.jsonrpc import rpc
from clawdforge.jsonrpc.rpc import METHOD_NOT_FOUND, Disconnected, RpcError
from clawdforge.wire.base import Json
from tests.unit.rpc_peer import Heard, talk, until

Script = Callable[[str], str]


@pytest.fixture
def script(tmp_path_factory: pytest.TempPathFactory) -> Script:
    def write(body: str) -> str:
        path = tmp_path_factory.mktemp("peer") / "body.py"
        path.write_text(body)
        return str(path)

    return write


async def test_notifications_are_handled_one_by_one_in_order_before_the_answer(script: Script) -> None:
    body = "for n in range(500): update(n)\nsend(id=number, result={'done': True})\nupdate(500)"
    busy = 0

    async def slow(_message: Json) -> None:
        nonlocal busy
        busy += 1
        assert busy == 1
        await asyncio.sleep(0)
        busy -= 1

    heard = Heard(on_message=slow)
    seen_at_answer: list[int] = []

    async def answered(message: Json, size: int) -> None:
        assert message["result"] == {"done": True}
        assert size > 0
        seen_at_answer.append(len(heard.told_messages))

    async with talk(script(body), heard) as (connection, _):
        assert await connection.request("go", {}, on_answer=answered) == {"done": True}
        assert seen_at_answer == [500]
        await until(lambda: len(heard.told_messages) == 501)
    assert heard.numbers() == list(range(501))


async def test_an_agent_that_floods_lets_others_run_between_its_lines(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rpc, "PASS_SECS", -1.0)  # every line takes longer than that
    body = 'out.write(\'\'.join(\'{"method": "m", "params": {}}\\n\' for n in range(3000))); out.flush()'
    heard, passes = Heard(), 0

    async def count() -> None:
        nonlocal passes
        while len(heard.told_messages) < 3000:
            passes += bool(heard.told_messages)
            await asyncio.sleep(0)

    async with talk(script(body), heard) as (connection, _), asyncio.timeout(60):
        counting = asyncio.create_task(count())
        await connection.notify("go", {})
        await counting
    assert passes > 1000


class Noted(LoopTurns):
    """Whose turns were asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.entered: list[str] = []

    async def enter(self, app: str) -> None:
        self.entered.append(app)
        await super().enter(app)


async def test_what_an_agent_says_waits_for_its_apps_turn_like_a_request(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where another app is about it rests: a chatty agent had nearly all of the loop."""
    monkeypatch.setattr(rpc, "PASS_SECS", -1.0)  # every line takes longer than that
    turns, computed = Noted(), []

    class Thread(Computing):
        async def run(self, app: str, work: Callable[[], Result]) -> Result:
            computed.append(app)
            return await super().run(app, work)

    body = "for n in range(50): update(n)\nupdate('x' * 300_000)"
    heard = Heard()
    async with talk(script(body), heard, pace=Pace(turns, Thread())) as (connection, _):
        await connection.notify("go", {})
        await until(lambda: len(heard.told_messages) == 51)
    assert len(turns.entered) >= 50
    assert {*turns.entered} == {"app"} == {*computed}


async def test_lines_that_are_no_json_let_others_run_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """They give nothing to handle, so all of a chunk was taken apart at once."""
    monkeypatch.setattr(rpc, "PASS_SECS", -1.0)  # everything takes longer than that
    passes = 0

    class Garbage:
        """Two chunks, and the end."""

        def __init__(self) -> None:
            self._left = 2

        async def read(self) -> bytes:
            self._left -= 1
            return b"x\n" * (READ_BYTES // 2) if self._left >= 0 else b""

        def unread(self) -> int:
            return 0

    async def count() -> None:
        nonlocal passes
        while True:
            passes += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    connection = rpc.Connection(Garbage(), Heard(), Pace().of("app"))  # type: ignore[arg-type]  # nothing is written to it
    async with asyncio.timeout(60):
        await connection._reader
    counting.cancel()
    await connection.close()
    assert passes >= 40


async def test_many_notifications_are_one_write() -> None:
    """A long conversation is shown to an editor by the page, not by the message."""
    written: list[bytes] = []

    class Taking:
        async def read(self) -> bytes:
            await asyncio.Event().wait()
            return b""

        async def write(self, pieces: Sequence[bytes]) -> None:
            written.extend(pieces)

    connection = rpc.Connection(Taking(), Heard(), Pace().of("app"))  # type: ignore[arg-type]  # it ends by being closed
    try:
        await connection.notify_all("say", ({"n": number} for number in range(500)))
    finally:
        await connection.close()
    (data,) = written
    assert [json.loads(line)["params"]["n"] for line in data.splitlines()] == list(range(500))


async def test_an_error_answer_raises_with_the_words_of_the_other_side(script: Script) -> None:
    error = {"code": -32603, "message": "Internal error", "data": {"details": "no model"}}
    body = f"send(id=number, error={error!r})"
    async with talk(script(body), Heard()) as (connection, _):
        with pytest.raises(RpcError) as caught:
            await connection.request("go", {})
    assert caught.value.code == -32603
    assert caught.value.describe() == "Internal error: no model"


@pytest.mark.parametrize("error", ["'text'", "{}", "[1]", "{'code': 'x', 'message': None}"])
async def test_an_odd_error_answer_is_an_error_all_the_same(script: Script, error: str) -> None:
    async with talk(script(f"send(id=number, error={error})"), Heard()) as (connection, _):
        with pytest.raises(RpcError):
            await connection.request("go", {})


async def test_requests_of_the_other_side_do_not_hold_up_what_follows(script: Script) -> None:
    body = """
if method == "go":
    go = number
    update(0)
    send(id="ask-1", method="permission", params={})
    update(1)
    update(2)
elif method is None and number == "ask-1":
    send(id=go, result={"got": message["result"]})
"""
    decided = asyncio.Event()
    order: list[object] = []

    async def told(message: Json) -> None:
        order.append(message["params"].get("n", message["method"]))
        if order[-1] == 2:
            decided.set()

    async def asked(method: str, _params: Json) -> Json:
        order.append("asked")
        await decided.wait()
        return {"method": method}

    heard = Heard(on_message=told, on_request=asked)
    async with talk(script(body), heard) as (connection, _), asyncio.timeout(10):
        assert await connection.request("go", {}) == {"got": {"method": "permission"}}
    assert order == [0, "permission", "asked", 1, 2]


async def test_unknown_methods_and_broken_handlers_are_answered_with_an_error(script: Script) -> None:
    body = """
if method == "go":
    go, answers = number, []
    for name in ("unknown", "broken"):
        send(id=name, method=name, params=[1])
elif method is None:
    answers.append([number, message["error"]["code"]])
    if len(answers) == 2:
        send(id=go, result={"answers": sorted(answers)})
"""

    async def asked(method: str, params: Json) -> Json:
        assert params == {}
        if method == "broken":
            raise KeyError("x")
        raise RpcError(METHOD_NOT_FOUND, "no such method")

    async with talk(script(body), Heard(on_request=asked)) as (connection, _), asyncio.timeout(10):
        result = await connection.request("go", {})
    assert result == {"answers": [["broken", -32603], ["unknown", -32601]]}


async def test_a_flood_of_requests_is_refused_beyond_the_limit(script: Script) -> None:
    body = """
if method == "go":
    go, refused = number, 0
    for n in range(100):
        send(id=n, method="wait", params={})
elif method is None and "error" in message:
    refused += 1
    if refused == 36:
        send(id=go, result={"refused": refused})
"""

    async def asked(_method: str, _params: Json) -> Json:
        await asyncio.Event().wait()
        return {}

    async with talk(script(body), Heard(on_request=asked)) as (connection, _), asyncio.timeout(10):
        assert await connection.request("go", {}) == {"refused": 36}


async def test_the_end_of_the_other_side_fails_what_waits(script: Script) -> None:
    async with talk(script("update(1)\nos._exit(3)"), Heard()) as (connection, process):
        with pytest.raises(Disconnected):
            await connection.request("go", {})
        assert not connection.is_open
        assert await process.wait() == 3
        with pytest.raises(Disconnected):
            await connection.request("again", {})


async def test_a_handler_that_fails_ends_the_connection_with_its_own_error(script: Script) -> None:
    async def told(_message: Json) -> None:
        raise LookupError("the store is gone")

    async with talk(script("update(1)"), Heard(on_message=told)) as (connection, _):
        with pytest.raises(LookupError, match="the store is gone"):
            await connection.request("go", {})
        assert not connection.is_open


async def test_a_slow_handler_slows_the_other_side_down(script: Script, tmp_path: Path) -> None:
    progress = tmp_path / "progress"
    body = f"""
fd = os.open({str(progress)!r}, os.O_WRONLY | os.O_CREAT)
for n in range(3000):
    send(method="session/update", params={{"n": n, "pad": "x" * 10_000}})
    os.pwrite(fd, b"%d" % n, 0)
send(id=number, result={{}})
"""
    gate = asyncio.Event()

    async def told(_message: Json) -> None:
        await gate.wait()

    heard = Heard(on_message=told)
    async with talk(script(body), heard) as (connection, process), asyncio.timeout(60):
        asking = asyncio.create_task(connection.request("go", {}))
        before = -1
        peer = psutil.Process(process.pid)
        while (now := _progress(progress)) < 1 or now != before or peer.status() != psutil.STATUS_SLEEPING:
            before = now  # before it has begun it sleeps as well
            await asyncio.sleep(0.1)
        assert 0 < now < 300, "30 MB wait in the other program, not here"
        gate.set()
        await asking
    assert heard.numbers() == list(range(3000))


def _progress(path: Path) -> int:
    with suppress(OSError, ValueError):
        return int(path.read_text())
    return -1


async def test_a_200_mb_line_is_skipped_with_flat_memory(script: Script) -> None:
    body = """
part = "x" * 1_000_000
out.write('{"jsonrpc":"2.0","method":"session/update","params":{"text":"')
for _ in range(200): out.write(part)
out.write('"}}\\n')
update(1)
send(id=number, result={})
"""
    heard = Heard()
    me = psutil.Process()
    async with talk(script(body), heard) as (connection, _), asyncio.timeout(60):
        before = me.memory_info().rss
        asking = asyncio.create_task(connection.request("go", {}))
        most = before
        while not asking.done():
            most = max(most, me.memory_info().rss)
            await asyncio.sleep(0.005)
        await asking
    assert heard.numbers() == [1]
    assert len(heard.lost) == 1
    assert heard.lost[0] > 200_000_000
    assert most - before < 20_000_000


async def test_an_answer_that_is_too_long_is_an_error_and_not_a_hang(script: Script) -> None:
    body = "send(id=number, result={'x': 'y' * 2_000_000})"
    async with talk(script(body), Heard()) as (connection, _), asyncio.timeout(10):
        with pytest.raises(RpcError, match="too long"):
            await connection.request("go", {})


async def test_a_request_that_is_too_long_is_refused_and_not_left_waiting(script: Script) -> None:
    body = """
if method == "go":
    go = number
    out.write(json.dumps({"jsonrpc": "2.0", "id": 77, "method": "big", "params": "y" * 2_000_000}) + "\\n")
    out.flush()
elif number == 77:
    send(id=go, result={"code": message["error"]["code"]})
"""
    async with talk(script(body), Heard()) as (connection, _), asyncio.timeout(10):
        assert await connection.request("go", {}) == {"code": -32600}


async def test_garbage_and_answers_to_nothing_are_ignored(script: Script) -> None:
    body = """
print("Warning: something"); print("[1]"); print('"x"')
send(id=999, result={}); send(id=None, result={}); send(id="1", result={}); send(id=[1], result={}); send()
update(1)
send(id=number, result=None)
"""
    heard = Heard()
    async with talk(script(body), heard) as (connection, _), asyncio.timeout(10):
        assert await connection.request("go", {}) == {}
        assert "Warning: something" in connection.garbage()
    assert heard.numbers() == [1]


async def test_a_request_that_is_given_up_leaves_nothing_behind(script: Script) -> None:
    body = "if method == 'second': send(id=number - 1, result={'late': 1}); send(id=number, result={'ok': 1})"
    async with talk(script(body), Heard()) as (connection, _), asyncio.timeout(10):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await connection.request("first", {})
        assert await connection.request("second", {}) == {"ok": 1}
        assert connection._waiting == {}
