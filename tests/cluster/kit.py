"""Nodes by name, and one app that may ask any of them."""

import contextlib
import signal
from pathlib import Path
from typing import Any, Final

import httpx2

from clawdforge.drivers.processes.guard import SPAWN
from clawdforge.drivers.processes.survivors import find_tagged, folder_id
from clawdforge.stores.postgres.link import Link
from tests.api.harness import App, Server, until

LEASE_SECS: Final = 3.0
"""Where a node is killed or stopped, and others take over what it had."""

STEADY_SECS: Final = 15.0
"""Everywhere else: on a busy machine a node may stand still for most of the short lease, and would end its
agents."""

TALKS_ON: Final = "\n".join(f"echo word {number}\nsleep 0.5" for number in range(200))
"""A turn whose agent has always something to say, whenever its server is stopped."""

Event = dict[str, Any]


class Cluster:
    """Each node has a data folder of its own. The app's token is known to all of them."""

    def __init__(self, url: str, folder: Path, *flags: str) -> None:
        self.url = url
        self._flags = flags
        self._folder = folder
        self.nodes: dict[str, Server] = {}
        self.apps: dict[str, App] = {}
        self._token: App | None = None
        self.lease_secs = STEADY_SECS
        self.source: Path | None = None
        """Where another version of the program is that is started from now on."""

    def start(self, *names: str, **settings: str) -> None:
        for name in names:
            env = {} if self.source is None else {"PYTHONPATH": str(self.source)}
            env |= {"CLAWDFORGE_DATABASE_URL": self.url, "CLAWDFORGE_LEASE_SECS": str(self.lease_secs)}
            env |= {f"CLAWDFORGE_{key}": value for key, value in settings.items()}
            server = self.nodes[name] = Server(
                self._folder / name, env, *self._flags, cold=self.source is not None
            )
            if self._token is None:
                self._token = server.app("cluster")
            token = self._token
            self.apps[name] = App(token.name, token.token, token.token_id, server.client(token.token))

    def app(self, name: str) -> dict[str, App]:
        """Another app, by the node that it asks."""
        made = next(iter(self.nodes.values())).app(name)
        return {
            node: App(name, made.token, made.token_id, server.client(made.token))
            for node, server in self.nodes.items()
        }

    def folder(self, node: str) -> Path:
        return self._folder / node

    def query(self, statement: str, *values: str) -> list[tuple[Any, ...]]:
        """What the database says, for what no route tells."""
        with contextlib.closing(Link(self.url)) as link:
            return link.fetch(statement, values)

    def http(self, node: str) -> httpx2.Client:
        return self.apps[node].http

    def close(self) -> None:
        for server in self.nodes.values():
            if server.process.poll() is None:
                server.process.send_signal(signal.SIGCONT)  # a test that failed may have left it stopped
            server.stop()

    def submit(self, node: str, session_id: str, prompt: str, **body: Any) -> int:
        reply = self.http(node).post(f"/sessions/{session_id}/turns", json={"prompt": prompt, **body})
        assert reply.status_code == 202, reply.text
        return int(reply.json()["turn_index"])

    def say(self, node: str, session_id: str, prompt: str) -> str:
        reply = self.apps[node].turn(session_id, prompt)
        assert reply.status_code == 200, reply.text
        return "".join(event.get("content", "") for event in reply.json()["events"])

    def events(self, node: str, session_id: str) -> list[Event]:
        page = self.http(node).get(f"/sessions/{session_id}/events", params={"limit": 1000})
        assert page.status_code == 200, page.text
        found: list[Event] = page.json()["events"]
        return found

    def said(self, node: str, session_id: str) -> list[str]:
        return [event["content"] for event in self.events(node, session_id) if event["type"] == "text"]

    def turns(self, node: str, session_id: str) -> list[Event]:
        found: list[Event] = self.http(node).get(f"/sessions/{session_id}/turns").json()["turns"]
        return found

    def wait_for(self, node: str, session_id: str, kind: str, count: int = 1) -> None:
        def look() -> bool:
            found = [event for event in self.events(node, session_id) if event["type"] == kind]
            return len(found) >= count

        until(look, f"{count} {kind} at {node}")

    def ended(self, node: str, session_id: str, turn_index: int) -> Event:
        def find() -> Event | None:
            turn = self.turns(node, session_id)[turn_index - 1]
            return turn if turn["state"] == "ended" else None

        return until(find, f"the end of turn {turn_index}")

    def wait_published(self, session_id: str, turn_index: int) -> None:
        """The files of a session are published behind the answer. Before that, a kill loses them."""
        sql = "SELECT turn_index FROM publications WHERE session_id = $1"
        self.wait_row(sql, session_id, (turn_index,), f"turn {turn_index} is published")

    def wait_row(self, sql: str, session_id: str, row: tuple[Any, ...], what: str) -> None:
        """Until the database says this of a session. Each connection is a process: one is enough."""
        with contextlib.closing(Link(self.url)) as link:
            until(lambda: link.fetch(sql, [session_id]) == [row], what)

    def wait_free(self, session_id: str) -> None:
        """Its agent sleeps, and no node holds it."""
        sql = "SELECT holder FROM session_heads WHERE session_id = $1"
        self.wait_row(sql, session_id, (None,), "the session is let go")

    def check_log(self, node: str, session_id: str) -> None:
        """Every number once, and each turn begun and ended once."""
        events = self.events(node, session_id)
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        for kind in ("turn.started", "turn.ended"):
            turns = [event["turn"] for event in events if event["type"] == kind]
            assert len(turns) == len(set(turns)), (kind, turns)


def guards(server: Server) -> set[int]:
    """The processes that would end the agents of a server."""
    folder = folder_id(server.data_dir)
    return set(find_tagged(lambda tag: tag.folder == folder and tag.spawn == SPAWN))
