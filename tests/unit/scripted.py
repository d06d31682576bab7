"""A raw client for the scripted agent: real pipes, lines as they came, bounded waits."""

import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from clawdforge import scripted as agent

WAIT = 10.0
Message = dict[str, Any]


class Agent:
    """A raw client: one agent process, its lines as they came."""

    def __init__(self, home: Path, *flags: str, argv: list[str] | None = None) -> None:
        env = {"HOME": str(home), "PATH": os.environ["PATH"], "TAG": "seen"}
        self.process = subprocess.Popen(
            [*(argv or agent.command()), *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            cwd=home,
        )
        self.home = home
        self.session = ""
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._last = 0
        self._stderr = b""
        self._threads = [threading.Thread(target=run) for run in (self._read, self._drain)]
        for thread in self._threads:
            thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def _drain(self) -> None:
        assert self.process.stderr is not None
        self._stderr = self.process.stderr.read()

    def line(self) -> bytes:
        return self._lines.get(timeout=WAIT)

    def message(self) -> Message:
        line = self.line()
        assert line, "the agent ended"
        message = json.loads(line)
        assert isinstance(message, dict)
        return message

    def send(self, **message: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def post(self, method: str, **params: object) -> int:
        self._last += 1
        self.send(id=self._last, method=method, params=params)
        return self._last

    def until(self, number: int) -> tuple[list[Message], Message]:
        """Return what came before an answer, and the answer."""
        before: list[Message] = []
        while True:
            message = self.message()
            if message.get("id") == number and "method" not in message:
                return before, message
            before.append(message)

    def call(self, method: str, **params: object) -> Any:
        _, answer = self.until(self.post(method, **params))
        return answer.get("result", answer.get("error"))

    def open(self) -> "Agent":
        self.call("initialize", protocolVersion=1, clientCapabilities={})
        self.session = self.call("session/new", cwd=str(self.home), mcpServers=[])["sessionId"]
        assert kinds([self.message()]) == ["available_commands_update"]
        return self

    def load(self, session: str, how: str = "load") -> list[Message]:
        self.session = session
        before, answer = self.until(
            self.post(f"session/{how}", sessionId=session, cwd=str(self.home), mcpServers=[])
        )
        assert "result" in answer, answer
        return before

    def start(self, *texts: str) -> int:
        blocks = [{"type": "text", "text": text} for text in texts]
        return self.post("session/prompt", sessionId=self.session, prompt=blocks)

    def prompt(self, *texts: str) -> tuple[list[Message], Message]:
        return self.until(self.start(*texts))

    def say(self, *texts: str) -> str:
        return said(self.prompt(*texts)[0])

    def cancel(self) -> None:
        self.send(method="session/cancel", params={"sessionId": self.session})

    def memory(self) -> list[tuple[str, str]]:
        path = self.home / ".scripted" / f"{self.session}.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [(line["role"], line["text"]) for line in lines]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(WAIT)

    def stop_writing(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def hang_up(self) -> int:
        self.stop_writing()
        return self.process.wait(WAIT)

    def stderr(self) -> bytes:
        self._threads[1].join(WAIT)
        return self._stderr

    def close(self) -> None:
        self.kill()
        for thread in self._threads:
            thread.join(WAIT)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            if not pipe.closed:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue


Launch = Callable[..., Agent]


@contextmanager
def launching(home: Path) -> Iterator[Launch]:
    """Start agents with `home` as their home; end them all."""
    started: list[Agent] = []

    def run(*flags: str, argv: list[str] | None = None) -> Agent:
        started.append(Agent(home, *flags, argv=argv))
        return started[-1]

    try:
        yield run
    finally:
        for one in started:
            one.close()


def updates(messages: list[Message]) -> list[Message]:
    return [message["params"]["update"] for message in messages if message.get("method") == "session/update"]


def kinds(messages: list[Message]) -> list[str]:
    return [update["sessionUpdate"] for update in updates(messages)]


def said(messages: list[Message]) -> str:
    chunks = [update for update in updates(messages) if update["sessionUpdate"] == "agent_message_chunk"]
    return "".join(update["content"]["text"] for update in chunks)


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.01)
