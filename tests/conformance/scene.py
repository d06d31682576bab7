"""Where the hostile agent tries: a real server, an agent at each level, victims beside it, bait outside."""

import ctypes
import json
import os
import pty
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx2

from tests.api.harness import App, Server, until
from tests.conformance.bombs import LIBC, call
from tests.conformance.escapes import LEVELS

HOSTILE: Final = "from tests.conformance.hostile import Client; Client().serve()"
PARTS: Final = ("hostile.py", "bombs.py", "calls.py", "deputies.py", "networks.py", "reaches.py")
SECRET: Final = "canary-of-another-session"
BOUNDS: Final = {"CLAWDFORGE_AGENT_MAX_PROCESSES": "500", "CLAWDFORGE_AGENT_MAX_MEMORY_BYTES": "500MiB"}
"""Far less than the bombs try, and more than two hundred strays need."""

IPC_CREAT: Final = 0o1000
IPC_RMID: Final = 0
MESSAGES: Final = 16


@dataclass
class Scene:
    """A server with an agent at each level, another session beside each, and places outside."""

    server: Server
    app: App
    program: Path
    sessions: dict[str, str]
    facts: dict[str, dict[str, Any]]
    _found: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)

    @property
    def groups(self) -> bool:
        """Whether this machine holds agents to both limits."""
        health = self.app.http.get("/healthz").json()
        return None not in (health["agent_max_processes"], health["agent_max_memory_bytes"])

    @property
    def scopes(self) -> bool:
        """Whether the kernel bounds signals and abstract sockets."""
        return "landlock_scopes" in self.app.http.get("/healthz").json()["sandbox_walls"]

    def attempt(self, level: str, probe: str, **facts: Any) -> dict[str, str]:
        """What the agent of a level got. A plain attempt is made once: it may use up what it reaches for."""
        if not facts and (level, probe) in self._found:
            return self._found[level, probe]
        order = json.dumps({"probe": probe, "facts": self.facts[level] | facts})
        found = read_report(self.app.turn(self.sessions[level], order))
        if not facts:
            self._found[level, probe] = found
        return found

    def own(self, level: str) -> dict[str, Any]:
        """Facts that lead to files of the agent's own."""
        mine = Path(self.app.http.get(f"/sessions/{self.sessions[level]}").json()["cwd"]) / "mine"
        mine.mkdir(exist_ok=True)
        token = mine / "local.token"
        token.write_text("its own")
        return {
            "data": str(mine),
            "up": "mine",
            "plain": True,
            "variable": "HOME",
            "environment": str(token),
            "descriptors": [str(token)],
            "command": f"{sys.executable} -c pass",
        }

    def without_walls(self, probe: str, folder: Path, **facts: Any) -> dict[str, str]:
        """What the same program gets when the operator runs it, on a terminal, with a file left open."""
        prompt = {"prompt": [{"type": "text", "text": json.dumps({"probe": probe, "facts": facts})}]}
        order, answer = folder / "order", folder / "answer"
        order.write_text(json.dumps({"id": 1, "method": "session/prompt", "params": prompt}) + "\n")
        line = '"$0" -I "$1" < "$2" > "$3"; true'
        words = [sys.executable, str(self.program), str(order), str(answer)]
        ours, theirs = pty.openpty()
        try:
            with order.open() as left_open:
                subprocess.run(
                    ["setsid", "--ctty", "--wait", "sh", "-c", line, *words],
                    cwd=folder,
                    env={**os.environ, "HOME": str(folder), "SECRET_OF_THE_OPERATOR": SECRET},
                    stdin=theirs,
                    pass_fds=[left_open.fileno()],
                    check=False,
                    timeout=60,
                )
        finally:
            os.close(ours)
            os.close(theirs)
        for said in answer.read_text().splitlines():
            message = json.loads(said)
            if message.get("method") == "session/update":
                found: dict[str, str] = json.loads(message["params"]["update"]["content"]["text"])
                return found
        return {"loot": "", "why": "it said nothing"}


def read_report(reply: httpx2.Response) -> dict[str, str]:
    """What the agent says that it got, or why it died."""
    if reply.status_code == 502:
        return {"loot": "", "why": reply.json()["error"]}
    assert reply.status_code == 200, reply.text
    texts = [event["content"] for event in reply.json()["events"] if event["type"] == "text"]
    found: dict[str, str] = json.loads("".join(texts))
    return found


@contextmanager
def made(root: Path) -> Iterator[Scene]:
    """Everything, for the time of the block."""
    with ExitStack() as stack:
        program = copy_program(stack)
        command = json.dumps(f"{sys.executable} -I {program}")
        config = root / "clawdforge.toml"
        tables = (f'[agents.{level}]\ncommand = {command}\nsandbox = "{level}"\n' for level in LEVELS)
        config.write_text("".join(tables))
        outside = _bait(root, stack)
        env = {**BOUNDS, "HOME": outside["operator_home"], "SECRET_OF_THE_OPERATOR": SECRET}
        flags = ("--config", str(config), "--trust-loopback")
        server = Server(root / "data", env, *flags, cold=True)
        stack.callback(server.stop)
        outside |= {"data": str(server.data_dir), "server": server.process.pid, "url": server.url}
        held_open = os.open(server.data_dir, os.O_RDONLY | os.O_DIRECTORY)
        stack.callback(os.close, held_open)
        app = server.app()
        sessions = {level: app.session(agent=level) for level in LEVELS}
        facts = {level: {**outside, **_victim(server, level)} for level in LEVELS}
        yield Scene(server, app, program, sessions, facts)


def copy_program(stack: ExitStack) -> Path:
    """The hostile agent as a folder of its own; agents do not see our /tmp."""
    program = Path("/var/tmp") / f"clawdforge-hostile-{os.getpid()}"
    stack.callback(shutil.rmtree, program, ignore_errors=True)
    parts = program / "tests" / "conformance"
    parts.mkdir(parents=True)
    for name in PARTS:
        shutil.copy(Path(__file__).with_name(name), parts)
    (program / "__main__.py").write_text(HOSTILE)
    return program


def _bait(root: Path, stack: ExitStack) -> dict[str, Any]:
    """Files, sockets and shared memory that are nobody's business but the operator's."""
    users_file = Path("/var/tmp") / f"clawdforge-escapes-{os.getpid()}"
    shared = Path("/dev/shm") / users_file.name
    named = Path("/tmp") / f"{users_file.name}.sock"
    for path in (users_file, shared):
        path.write_text(SECRET)
    for path in (users_file, shared, named, users_file.with_suffix(".evil")):
        stack.callback(path.unlink, missing_ok=True)
    keys = root / "operator" / ".ssh"
    keys.mkdir(parents=True)
    (keys / "key").write_text(SECRET)
    addresses: tuple[Any, ...] = (f"\0{users_file}", str(named), ("127.0.0.1", 0))
    listeners = []
    for address in addresses:
        family = socket.AF_INET if isinstance(address, tuple) else socket.AF_UNIX
        listeners.append(stack.enter_context(socket.socket(family)))
        listeners[-1].bind(address)
        listeners[-1].listen(64)
    return {
        "outside": "put there",
        "up": "../..",
        "operator_home": str(root / "operator"),
        "users_file": str(users_file),
        "shared_file": str(shared),
        "abstract": str(users_file),
        "named": str(named),
        "listener": listeners[2].getsockname()[1],
        **_shared_memory(stack),
    }


def _shared_memory(stack: ExitStack) -> dict[str, Any]:
    """One of each kind, under a key and a name that an agent may know or guess."""
    key, text = 0x5EED0000 | os.getpid() & 0xFFFF, SECRET.encode()
    segment = call("shmget", key, 4096, IPC_CREAT | 0o600)
    stack.callback(LIBC.shmctl, segment, IPC_RMID, None)
    LIBC.shmat.restype = ctypes.c_void_p
    address = LIBC.shmat(segment, None, 0)
    ctypes.memmove(address, text, len(text))
    LIBC.shmdt(ctypes.c_void_p(address))
    queue = call("msgget", key, IPC_CREAT | 0o600)
    stack.callback(LIBC.msgctl, queue, IPC_RMID, None)
    message = ctypes.create_string_buffer((1).to_bytes(8, sys.byteorder) + text)
    for _ in range(MESSAGES):
        call("msgsnd", queue, message, ctypes.c_size_t(len(text)), 0)
    semaphores = call("semget", key, 1, IPC_CREAT | 0o600)
    stack.callback(LIBC.semctl, semaphores, 0, IPC_RMID)
    name = f"/clawdforge-{os.getpid()}"
    with suppress(OSError):  # a kernel may have none
        os.close(call("mq_open", name.encode(), os.O_CREAT | os.O_RDWR, 0o600, None))
        stack.callback(LIBC.mq_unlink, name.encode())
    return {"ipc_key": key, "queue": name}


def _victim(server: Server, level: str) -> dict[str, Any]:
    """Another app's session with a live agent and something to steal."""
    app = server.app()
    sid = app.session(agent=level)
    reply = app.turn(
        sid, json.dumps({"probe": "core_file", "facts": {"data": "/", "server": 1, "victim": 1}})
    )
    assert reply.status_code == 200, reply.text
    home, workspace = (server.data_dir / name / sid for name in ("homes", "workspaces"))
    for folder in (home, workspace, home / "doomed"):
        folder.mkdir(exist_ok=True)
        (folder / "secret").write_text(SECRET)
    (home / "replaced").mkdir()
    for name in ("moved", "swapped", "short"):
        (home / name).write_text(SECRET)
    files = app.http.post("/files", files={"file": ("a.txt", b"upload")})
    assert files.status_code == 200, files.text
    pid = until(lambda: _agent_of(home), "the other agent")
    return {
        "victim": pid,
        "other_home": str(home),
        "other_secret": str(home / "secret"),
        "other_workspace": str(workspace),
    }


def _agent_of(home: Path) -> int | None:
    """The process of the agent itself, not what stands above it."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
            mine = f"HOME={home}\0".encode() in path.with_name("environ").read_bytes()
        except OSError:
            continue
        if mine and words[:2] == [os.fsencode(sys.executable), b"-I"] and b"hostile" in words[2]:
            return int(path.parent.name)
    return None
