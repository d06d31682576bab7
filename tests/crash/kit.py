"""Servers that are killed, the record of an agent that sees every prompt, and what must hold afterwards."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2

from clawdforge.scripted import command
from clawdforge.wire.local import LOCK_FILE
from tests.api.harness import App, Server, until

Event = dict[str, Any]


class Forge:
    """One data folder, the servers that live and die on it, and one app."""

    def __init__(self, folder: Path, *flags: str, **settings: str) -> None:
        self.folder = folder
        self.witness_file = folder / "witness.jsonl"
        self.witness_file.touch()
        self.gate = folder / "gates" / "gate"
        self.gate.parent.mkdir()
        self._spawned: list[subprocess.Popen[bytes]] = []
        agent = " ".join(command("--witness", str(self.witness_file)))
        slow = f"sh -c 'while [ -e {self.gate} ]; do sleep 0.05; done; exec {agent}'"
        env = {f"CLAWDFORGE_{name}": value for name, value in settings.items()}
        env |= {"HOME": str(folder), "CLAWDFORGE_AGENT_SCRIPTED": agent, "CLAWDFORGE_AGENT_GATED": slow}
        env |= {"CLAWDFORGE_AGENT_UIDS": "off"}  # a user of its own would get a copy of the witness
        config = folder / "clawdforge.toml"
        # What agents tell of themselves is outside their sandbox, in a file that all sessions share.
        shared = f'credentials = ["{self.witness_file.name}"]\nreadable = ["{self.gate.parent}"]\n'
        config.write_text(
            f'[agents.untamed]\ncommand = {json.dumps(agent)}\nsandbox = "off"\n'
            f"[agents.scripted]\n{shared}[agents.gated]\n{shared}"
        )
        flags = ("--config", str(config), *flags)
        self.server = Server(folder / "data", env, *flags)
        self.app = self.server.app("crash")

    @property
    def http(self) -> httpx2.Client:
        return self.app.http

    def kill(self) -> None:
        self.server.stop(signal.SIGKILL)

    def restart(self) -> None:
        """The same app with the same token, on whatever port there is now."""
        self.server.start()
        self.again()

    def again(self) -> None:
        token = self.app.token
        self.app = App(self.app.name, token, self.app.token_id, self.server.client(token))

    def spawn(self) -> "subprocess.Popen[bytes]":
        """A server for which nobody waits."""
        command_line = [sys.executable, "-m", "clawdforge", "serve", "--port", "0"]
        program = subprocess.Popen(
            [*command_line, "--data-dir", str(self.server.data_dir)],
            env=self.server._env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._spawned.append(program)
        return program

    def close(self) -> None:
        """End what a test did not."""
        self.gate.unlink(missing_ok=True)
        for program in self._spawned:
            with program:
                program.kill()
        self.server.stop()

    def holder(self) -> int | None:
        """The process that has the data folder, also before it is ready."""
        try:
            return int(json.loads((self.server.data_dir / LOCK_FILE).read_text())["pid"])
        except (OSError, ValueError, KeyError):
            return None

    def freeze(self) -> None:
        os.kill(self.server.process.pid, signal.SIGSTOP)

    def session(self, **body: Any) -> str:
        return self.app.session(**{"agent": "scripted", **body})

    def turn(self, session_id: str, prompt: str, **body: Any) -> Event:
        reply = self.app.turn(session_id, prompt, **body)
        assert reply.status_code == 200, reply.text
        found: Event = reply.json()
        return found

    def said(self, session_id: str, prompt: str) -> str:
        return "".join(e.get("content", "") for e in self.turn(session_id, prompt)["events"])

    def submit(self, session_id: str, prompt: str, **body: Any) -> int:
        reply = self.http.post(f"/sessions/{session_id}/turns", json={"prompt": prompt, **body})
        assert reply.status_code == 202, reply.text
        return int(reply.json()["turn_index"])

    def events(self, session_id: str) -> list[Event]:
        found: list[Event] = []
        while True:
            after = found[-1]["seq"] if found else 0
            page = self.http.get(f"/sessions/{session_id}/events", params={"after": after, "limit": 1000})
            batch = page.json()["events"]
            if not batch:
                return found
            found += batch

    def turns(self, session_id: str) -> list[Event]:
        found: list[Event] = self.http.get(f"/sessions/{session_id}/turns").json()["turns"]
        return found

    def messages(self, session_id: str) -> list[Event]:
        found: list[Event] = self.http.get(f"/sessions/{session_id}/messages").json()["messages"]
        return found

    def seen(self, session_id: str, wanted: Callable[[Event], bool], what: str) -> None:
        until(lambda: any(map(wanted, self.events(session_id))), what)

    def ended(self, session_id: str, turn_index: int) -> Event:
        def find() -> Event | None:
            turn = self.turns(session_id)[turn_index - 1]
            return turn if turn["state"] == "ended" else None

        return until(find, f"the end of turn {turn_index}")

    def handed(self) -> Counter[str]:
        """How often each prompt reached an agent."""
        lines = self.witness_file.read_text().splitlines() if self.witness_file.exists() else []
        return Counter(json.loads(line)["prompt"] for line in lines)

    def remembered(self, session_id: str) -> list[str]:
        """The prompts that the session's agent has in its own memory, this one left out."""
        found: list[str] = json.loads(self.said(session_id, "recall"))
        return found

    def memory_files(self, session_id: str) -> str:
        home = self.server.data_dir / "homes" / session_id
        return "".join(path.read_text() for path in home.glob(".scripted/*.jsonl"))

    def post_unread(self, path: str, body: Event, key: str) -> socket.socket:
        """A request that lies in the server's socket and is never answered."""
        data = json.dumps(body).encode()
        host, port = self.server.url.removeprefix("http://").split(":")
        raw = socket.create_connection((host, int(port)))
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {self.app.token}\r\n"
            f"Idempotency-Key: {key}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        )
        raw.sendall(head.encode() + data)
        return raw

    def check(self, session_id: str) -> None:
        """What holds of every log at every moment without a running turn."""
        log = self.events(session_id)
        assert [event["seq"] for event in log] == list(range(1, len(log) + 1))
        queued = [event["turn"] for event in log if event["type"] == "turn.queued"]
        assert queued == list(range(1, len(queued) + 1))
        ended = Counter(event["turn"] for event in log if event["type"] == "turn.ended")
        assert set(ended.values()) <= {1}
        for turn in self.turns(session_id):
            assert (turn["state"] == "ended") == (turn["turn_index"] in ended), turn
        state = self.http.get(f"/sessions/{session_id}").json()
        assert state["head"] == len(log)
        asked = {event["permission_id"] for event in log if event["type"] == "permission.requested"}
        decided = {event.get("permission_id") for event in log if event["type"] == "permission.decided"}
        if state["running_turn"] is None:
            assert asked <= decided
