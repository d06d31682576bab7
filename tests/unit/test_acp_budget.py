"""What the requests and answers of one agent may take of the server's memory."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from clawdforge.core.models.agents import Ask, Verdict
from clawdforge.drivers.acp import files as acp_files
from clawdforge.drivers.acp.budget import MAX_BYTES, AnswerBudget
from clawdforge.drivers.acp.client import ALLOW, ClientSide
from clawdforge.drivers.acp.files import WorkspaceFiles
from clawdforge.drivers.acp.terminals import Terminals
from clawdforge.jsonrpc import rpc
from clawdforge.jsonrpc.encoding import LongText
from clawdforge.jsonrpc.rpc import INVALID_PARAMS, RpcError
from clawdforge.wire.base import Json
from tests.unit.rpc_peer import Heard, talk, until

GREEDY = """
import time
if method == "go":
    for n in range(8):
        send(id=n, method="fs/read_text_file", params={"path": params["path"]})
    while not os.path.exists(params["until"]):
        time.sleep(0.01)
elif method is None:
    send(method="got", params={"n": len(message["result"]["content"])})
"""


class CountedFiles(WorkspaceFiles):
    reads = 0

    def read(self, *given: Any) -> LongText:
        self.reads += 1
        return super().read(*given)


async def allow(_request: Ask) -> Verdict:
    return Verdict(option_id=ALLOW)


def client_on(files: WorkspaceFiles) -> ClientSide:
    return ClientSide(files, cast("Terminals", cast("Any", SilentTerminals())), allow)


class SilentTerminals:
    """A client needs some; nobody asks them anything here."""

    output = wait_for_exit = kill = release = None


async def test_an_agent_that_asks_for_much_and_reads_nothing_waits_for_itself(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "large").write_bytes(b"x" * MAX_BYTES)
    (tmp_path / "peer.py").write_text(GREEDY)
    files = CountedFiles(work)
    client = client_on(files)
    heard = Heard(on_request=client.answer)
    async with talk(str(tmp_path / "peer.py"), heard) as (connection, _):
        await connection.notify("go", {"path": str(work / "large"), "until": str(tmp_path / "read on")})
        await until(lambda: client._budget.waiting == 7 and files.reads > 0)  # a thread reads
        assert files.reads == 1
        (tmp_path / "read on").touch()
        await until(lambda: sum(one.get("method") == "got" for one in heard.told_messages) == 8, within=60)
        assert (files.reads, client._budget._taken) == (8, 0)


async def test_the_budget_is_kept_in_order_and_given_back_when_an_answer_is_cancelled() -> None:
    budget = AnswerBudget(100)
    given: list[int] = []

    async def answer(size: int, over: asyncio.Event) -> None:
        await budget.take(size)
        given.append(size)
        await over.wait()

    ends = [asyncio.Event() for _ in range(5)]
    tasks = [
        asyncio.create_task(answer(size, end)) for size, end in zip((60, 500, 30, 70, 20), ends, strict=True)
    ]
    await until(lambda: budget.waiting == 4)
    assert given == [60]  # 500 is next, and nothing passes it
    tasks[0].cancel()
    await until(lambda: given == [60, 500])
    tasks[2].cancel()
    ends[1].set()
    await until(lambda: given == [60, 500, 70, 20])
    for end in ends:
        end.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (budget._taken, budget.waiting) == (0, 0)


def test_a_file_that_grows_after_it_was_measured_is_given_as_it_was(tmp_path: Path) -> None:
    path = str(tmp_path / "log")
    (tmp_path / "log").write_text("one\ntwo")
    files = WorkspaceFiles(tmp_path)
    size = files.measure(path)
    (tmp_path / "log").write_text("one\ntwo\nthree\n")
    assert str(files.read(path, None, None, size)) == "one\ntwo"
    assert str(files.read(path, 2, 1, size)) == "two"
    assert str(files.read(path, 3, None, size)) == ""
    assert str(files.read(path, None, None)) == "one\ntwo\nthree\n"


def test_a_file_that_is_too_long_is_refused_and_not_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent that writes back what it was given must not lose the rest."""
    monkeypatch.setattr(acp_files, "MAX_FILE_BYTES", 8)
    path = str(tmp_path / "log")
    (tmp_path / "log").write_text("one\ntwo\nthree\n")
    files = WorkspaceFiles(tmp_path)
    size = files.measure(path)
    with pytest.raises(RpcError, match="too long") as refused:
        files.read(path, None, None, size)
    assert refused.value.code == INVALID_PARAMS
    assert str(files.read(path, 3, 1, size)) == "three\n"


FLOOD = """
if method == "go":
    for n in range(4):
        send(id=n, method="write", params={"content": "x" * params["size"]})
    send(method="asked", params={})
elif method is None:
    send(method="answer", params={"id": number, "error": "error" in message})
"""


async def test_long_requests_are_refused_when_many_of_them_are_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rpc, "MAX_OPEN_BYTES", 25_000)
    (tmp_path / "peer.py").write_text(FLOOD)
    over = asyncio.Event()

    async def wait(_method: str, _params: Json) -> Json:
        await over.wait()
        return {}

    heard = Heard(on_request=wait)

    def answers() -> dict[int, bool]:
        params = [one["params"] for one in heard.told_messages if one["method"] == "answer"]
        return {each["id"]: each["error"] for each in params}

    async with talk(str(tmp_path / "peer.py"), heard) as (connection, _):
        await connection.notify("go", {"size": 10_000})
        await until(lambda: len(answers()) == 2)
        assert answers() == {2: True, 3: True}
        over.set()
        await until(lambda: len(answers()) == 4)
        assert answers()[0] is answers()[1] is False
        over.clear()
        heard.told_messages.clear()
        await connection.notify("go", {"size": 30_000})  # longer than all may be: one alone may
        await until(lambda: len(answers()) == 3)
        over.set()
        await until(lambda: answers() == {0: False, 1: True, 2: True, 3: True})
