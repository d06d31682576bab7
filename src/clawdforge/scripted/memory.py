"""What the agent remembers, as files in its home; and the witness, which remembers for the tests."""

# pathlib would add 6 ms to each start of a program that is started thousands of times.
# ruff: noqa: PTH123

from __future__ import annotations

import posix as os
import time

from clawdforge.scripted.plain_json import decode, encode
from clawdforge.scripted.system import exists, join, make_folder, variables


def append(path: str, record: dict[str, object], *, sync: bool = False) -> None:
    """Append one JSON line with one write."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(handle, encode(record) + b"\n")
        if sync:
            os.fsync(handle)
    finally:
        os.close(handle)


class Memory:
    """One session's messages: a list, and `<session>.jsonl` with one line for each."""

    def __init__(self, path: str, *, late: bool, sync: bool) -> None:
        self._path = path
        self._late = late
        self._sync = sync
        self._held: list[dict[str, object]] = []
        self.prompts = 0
        self.usage: dict[str, int] = {}  # the sum of all turns
        self.lines = _read(path)
        for line in self.lines:
            self._count(line)

    def add(self, role: str, text: str, **more: object) -> None:
        line: dict[str, object] = {"role": role, "text": text, "at": time.time(), **more}
        self.lines.append(line)
        self._count(line)
        self._held.append(line)
        if not self._late:
            self.flush()

    def flush(self) -> None:
        held, self._held = self._held, []
        for line in held:
            append(self._path, line, sync=self._sync)

    def texts(self, role: str) -> list[str]:
        return [str(line["text"]) for line in self.lines if line["role"] == role]

    def _count(self, line: dict[str, object]) -> None:
        self.prompts += line["role"] == "user"
        usage = line.get("usage")
        for key, value in usage.items() if isinstance(usage, dict) else ():
            self.usage[key] = self.usage.get(key, 0) + value


class Home:
    """The folder `$HOME/.scripted`: two files for each session, its head and its messages."""

    def __init__(self, *, late: bool, sync: bool) -> None:
        self.folder = join(variables().get("HOME") or os.getcwd(), ".scripted")
        self._late = late
        self._sync = sync

    def head(self, session: str) -> dict[str, object] | None:
        """Return what is known of a session: `cwd`, `mode`, `model`; None for an unknown one."""
        if not session.replace("-", "").isalnum():
            return None
        try:
            with open(f"{self.folder}/{session}.json", "rb") as file:
                head = decode(file.read())
        except (OSError, ValueError):
            return None
        return head if isinstance(head, dict) else None

    def save(self, session: str, head: dict[str, object]) -> None:
        make_folder(self.folder)
        path = f"{self.folder}/{session}.json"
        with open(f"{path}.new", "wb") as file:
            file.write(encode(head) + b"\n")
            if self._sync:
                file.flush()
                os.fsync(file.fileno())
        os.replace(f"{path}.new", path)

    def memory(self, session: str) -> Memory:
        return Memory(f"{self.folder}/{session}.jsonl", late=self._late, sync=self._sync)

    def sessions(self) -> list[dict[str, object]]:
        """List all sessions in the shape of session/list."""
        try:
            names = sorted(os.listdir(self.folder))
        except OSError:
            return []
        found: list[dict[str, object]] = []
        for name in names:
            session, _, kind = name.rpartition(".")
            head = self.head(session) if kind == "json" else None
            if head is not None:
                newest = max(
                    os.stat(path).st_mtime
                    for path in (f"{self.folder}/{session}.json", f"{self.folder}/{session}.jsonl")
                    if exists(path)
                )
                stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(newest))
                found.append({"sessionId": session, "cwd": head.get("cwd", "/"), "updatedAt": stamp})
        return found


def _read(path: str) -> list[dict[str, object]]:
    """Read the lines; a line that was cut by a kill is left out."""
    lines: list[dict[str, object]] = []
    try:
        with open(path, "rb") as file:
            for raw in file:
                try:
                    line = decode(raw)
                except ValueError:
                    continue
                if isinstance(line, dict) and "role" in line and "text" in line:
                    lines.append(line)
    except FileNotFoundError:
        pass
    return lines
