"""A real server process, its apps, and a reader of its event streams."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import httpx2
import pytest

from clawdforge.wire.local import LOCK_FILE
from clawdforge.wire.sse import Decoder, Frame
from tests.api.forked import Forked
from tests.databases import USUAL, Store, databases, run_on_postgres

ADMIN_TOKEN = "cf_admin_token_of_the_tests_0123456789"
AGENT = f"{sys.executable} -m clawdforge.scripted"
AGENTS = {
    "CLAWDFORGE_AGENT_CLAUDE": AGENT,
    "CLAWDFORGE_AGENT_MISSING": "/nonexistent/agent --acp",
    "CLAWDFORGE_AGENT_DIES": f"{AGENT} --exit-at-start",
    "CLAWDFORGE_AGENT_LOGIN": f"{AGENT} --auth-required",
}
WARM_SECS: Final = 40.0
COLD_SECS: Final = 120.0
"""So long the start of a server may take: a cold one imports everything first."""

T = TypeVar("T")


def until(found: Callable[[], T | None], what: str, seconds: float = WARM_SECS) -> T:
    """Wait for a condition, for a bounded time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = found()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"{what} did not happen within {seconds} s")


@dataclass(frozen=True)
class App:
    """One app with a token, and a client that uses it."""

    name: str
    token: str
    token_id: str
    http: httpx2.Client

    def session(self, **body: Any) -> str:
        reply = self.http.post("/sessions", json={"agent": "claude", **body})
        assert reply.status_code == 200, reply.text
        return str(reply.json()["session_id"])

    def turn(self, session_id: str, prompt: str, **body: Any) -> httpx2.Response:
        return self.http.post(f"/sessions/{session_id}/turn", json={"prompt": prompt, **body})

    @contextmanager
    def stream(self, path: str, method: str = "GET", **options: Any) -> Iterator["Stream"]:
        headers = {"Accept": "text/event-stream", **options.pop("headers", {})}
        with self.http.stream(method, path, headers=headers, **options) as response:
            yield Stream(response)


class Stream:
    """Frames of an open stream, one by one; heartbeats are counted."""

    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self.heartbeats = 0
        self._chunks = response.iter_raw()
        self._decoder = Decoder()
        self._frames: list[Frame] = []

    def __iter__(self) -> Iterator[Frame]:
        while True:
            while self._frames:
                yield self._frames.pop(0)
            chunk = next(self._chunks, None)
            if chunk is None:
                return
            self.heartbeats += sum(line.startswith(b":") for line in chunk.split(b"\n"))
            self._frames.extend(self._decoder.feed(chunk))

    def upto(self, kind: str) -> list[Frame]:
        """Frames up to the first of a type; later ones stay for the next call."""
        found: list[Frame] = []
        for frame in self:
            found.append(frame)
            if frame.event == kind:
                return found
        raise AssertionError(f"the stream ended before {kind}")


class TellingClient(httpx2.Client):
    """When no answer comes, the error tells what the server's sessions wait for."""

    def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            return super().send(request, **options)
        except httpx2.ReadTimeout as error:
            error.add_note(f"{request.method} {request.url}: {self._look()}")
            raise

    def _look(self) -> str:
        try:
            bearer = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
            return httpx2.get(
                self.base_url.join("/admin/stuck"), params={"secs": 5}, headers=bearer, timeout=10
            ).text
        except httpx2.HTTPError as error:
            return f"it does not say what sessions wait for: {error!r}"


class Server:
    """`clawdforge serve` on a free port. A `cold` one is a process of its own from its first moment on."""

    process: subprocess.Popen[bytes] | Forked

    def __init__(
        self,
        data_dir: Path,
        env: Mapping[str, str] | None = None,
        *flags: str,
        cold: bool = False,
        store: Store = USUAL,
    ) -> None:
        self.data_dir = data_dir
        self.store = store
        self._cold = cold
        self._flags = flags
        self._env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("CLAWDFORGE_")},
            **AGENTS,
            "CLAWDFORGE_ADMIN_TOKEN": ADMIN_TOKEN,
            "CLAWDFORGE_HEARTBEAT_SECS": "0.3",
            "CLAWDFORGE_MAX_BODY_BYTES": "24MiB",
            "CLAWDFORGE_SPARE_AGENTS": "0",  # every test would start one more; those of spares say so
            **(env or {}),
        }
        if store == "postgres" and "CLAWDFORGE_DATABASE_URL" not in self._env:
            self._env["CLAWDFORGE_DATABASE_URL"] = databases().find(data_dir)
        self._apps: list[httpx2.Client] = []
        self.start()

    def use_database(self, url: str) -> None:
        """From its next start on."""
        self._env["CLAWDFORGE_DATABASE_URL"] = url

    def start(self) -> None:
        self.log = (self.data_dir.parent / f"{self.data_dir.name}.log").open("ab")
        arguments = ["serve", "--port", "0", "--data-dir", str(self.data_dir), *self._flags]
        if self._cold:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "clawdforge", *arguments],
                env=self._env,
                stdout=self.log,
                stderr=self.log,
                process_group=0,  # in our session, so that no test of drivers takes it for an orphan
            )
        else:
            self.process = Forked(arguments, self._env, Path(self.log.name))
        try:
            self.url = until(self._ready, "the server's start", COLD_SECS if self._cold else WARM_SECS)
        except AssertionError:
            self.stop()
            raise

    def _ready(self) -> str | None:
        assert self.process.poll() is None, Path(self.log.name).read_text()[-4000:]
        try:
            lock = json.loads((self.data_dir / LOCK_FILE).read_text())
            if lock.get("pid") != self.process.pid or not lock.get("url"):
                return None
            url = str(lock["url"])
            return url if httpx2.get(f"{url}/readyz", timeout=2, verify=False).status_code == 200 else None
        except (OSError, ValueError, httpx2.TransportError):
            return None

    @property
    def database(self) -> Path:
        """The file of SQLite, for tests that look into it; they are left out where it is a Postgres."""
        if self.store == "postgres":
            pytest.skip("looks into the file of SQLite")
        return self.data_dir / "forge.db"

    def sql(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Looks into the rows of this server, or edits them, behind its back. Marks of values are `?`."""
        if self.store == "postgres":
            return run_on_postgres(self._env["CLAWDFORGE_DATABASE_URL"], statement, values)
        with closing(sqlite3.connect(self.database, timeout=10)) as database, database:
            return database.execute(statement, values).fetchall()

    @property
    def log_text(self) -> str:
        return Path(self.log.name).read_text()

    def client(self, token: str | None = None, **headers: str) -> httpx2.Client:
        bearer = {"Authorization": f"Bearer {token}"} if token else {}
        # Plain HTTP needs no certificates, and to read them takes 50 ms of a processor for every client.
        client = TellingClient(base_url=self.url, headers={**bearer, **headers}, timeout=60, verify=False)
        self._apps.append(client)
        return client

    def app(self, name: str | None = None, **body: Any) -> App:
        name = name or f"app-{uuid.uuid4().hex[:8]}"
        reply = self.admin().post("/admin/tokens", json={"app_name": name, **body})
        assert reply.status_code == 200, reply.text
        token = reply.json()
        return App(name, token["token"], token["token_id"], self.client(token["token"]))

    def grant(self, app: App, *folders: Path) -> None:
        """Let an app choose working directories in these folders, and in no others."""
        body = {"app_name": app.name, "workspace_roots": [str(folder.resolve()) for folder in folders]}
        reply = self.admin().post("/admin/apps", json=body)
        assert reply.status_code == 200, reply.text

    def admin(self) -> httpx2.Client:
        return self.client(ADMIN_TOKEN)

    @contextmanager
    def closing_clients(self) -> Iterator[None]:
        """Close the clients that are made meanwhile: one server lasts for many tests, and each makes some."""
        before = len(self._apps)
        yield
        for client in self._apps[before:]:
            client.close()
        del self._apps[before:]

    def stop(self, how: signal.Signals = signal.SIGTERM, seconds: float = 20) -> int:
        for client in self._apps:
            client.close()
        self._apps.clear()
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            return self.process.wait(seconds)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self.log.close()
