"""A backup under load is an acknowledged prefix with homes and files; restoring never overwrites."""

import os
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

import httpx2
import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.wire.base import to_iso
from tests.api.harness import until
from tests.crash.kit import Forge

pytestmark = pytest.mark.slow
Make = Callable[..., Forge]


def command(*words: str | Path) -> "subprocess.CompletedProcess[str]":
    env = {name: value for name, value in os.environ.items() if not name.startswith("CLAWDFORGE_")}
    line = [sys.executable, "-m", "clawdforge", *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, env=env, timeout=60, check=False)


class Load:
    """Turns without a pause in several sessions, and how many of each were answered."""

    def __init__(self, crash: Forge, sessions: list[str]) -> None:
        self.acknowledged = dict.fromkeys(sessions, 0)
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._go, args=(crash, one)) for one in sessions]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _go(self, crash: Forge, session_id: str) -> None:
        with httpx2.Client(
            base_url=crash.server.url, headers=crash.http.headers, timeout=60, verify=False
        ) as http:
            while not self._over.is_set():
                number = self.acknowledged[session_id] + 1
                body = {"prompt": f"echo number {number}"}
                assert http.post(f"/sessions/{session_id}/turn", json=body).status_code == 200
                self.acknowledged[session_id] = number


def test_a_backup_under_load_is_an_acknowledged_prefix(forge: Make, tmp_path: Path) -> None:
    crash = forge()
    sessions = [crash.session() for _ in range(3)]
    quiet, running = crash.session(), crash.session(on_interrupt="continue")
    upload = crash.http.post("/files", files={"file": ("note.txt", b"uploaded", "text/plain")}).json()
    crash.turn(quiet, "write work.txt in the workspace\necho remembered", files=[upload["file_token"]])
    crash.submit(running, "echo half\nhang")
    crash.seen(running, lambda event: event.get("content") == "half", "the half answer")
    file = tmp_path / "copy.tar.gz"
    with Load(crash, sessions) as load:
        until(lambda: min(load.acknowledged.values()) >= 2, "some turns")
        before = dict(load.acknowledged)
        made = command("backup", file, "--data-dir", crash.server.data_dir)
        after = dict(load.acknowledged)
    assert made.returncode == 0, made.stderr
    assert file.stat().st_mode & 0o077 == 0
    live = {session_id: crash.events(session_id) for session_id in (*sessions, quiet)}
    crash.server.stop()

    folder = tmp_path / "elsewhere"
    done = command("restore", file, "--data-dir", folder)
    assert done.returncode == 0, done.stderr
    again = command("restore", file, "--data-dir", folder)
    assert again.returncode == 1
    assert "not empty" in again.stderr
    assert command("doctor", "--data-dir", folder).returncode == 0

    crash.server.data_dir = folder
    begun = to_iso(SystemClock().now())  # a turn that was queued in the backup runs by itself from here on
    crash.restart()
    for session_id in sessions:
        found = [event for event in crash.events(session_id) if event["ts"] < begun]
        kept = [event for event in found if event["type"] == "turn.ended" and event["outcome"] == "completed"]
        assert before[session_id] <= len(kept) <= after[session_id] + 1
        whole = [event for event in found if event["seq"] <= kept[-1]["seq"]]
        assert whole == live[session_id][: len(whole)]
        crash.check(session_id)
        crash.turn(session_id, "echo goes on")
    assert crash.said(quiet, "read work.txt") == "in the workspace"
    assert crash.remembered(quiet) == [
        "write work.txt in the workspace\necho remembered",
        "read work.txt",
    ] or "echo remembered" in crash.said(quiet, "recall all")
    how = [event["how"] for event in crash.events(quiet) if event["type"] == "context.started"]
    assert how[:2] == ["new", "restored"]
    assert crash.http.get(f"/files/{upload['file_token']}").content == b"uploaded"
    assert str(folder) in crash.http.get(f"/sessions/{quiet}").json()["cwd"]
    assert crash.turns(running)[0]["outcome"] == "interrupted"
    assert crash.ended(running, 2)["outcome"] == "completed"


def test_a_damaged_backup_is_refused(forge: Make, tmp_path: Path) -> None:
    crash = forge()
    crash.turn(crash.session(), "echo something")
    crash.server.stop(how=9)  # type: ignore[arg-type]
    file = tmp_path / "copy.tar"
    assert command("backup", file, "--data-dir", crash.server.data_dir).returncode == 0
    assert command("backup", file, "--data-dir", crash.server.data_dir).returncode == 1
    whole = file.read_bytes()
    with tarfile.open(file) as tar:
        place = tar.getmember("forge.db").offset_data
    broken = {
        "torn": whole[: len(whole) // 2],
        "flipped": whole[: place + 5000] + bytes([whole[place + 5000] ^ 1]) + whole[place + 5001 :],
        "empty": b"",
        "other": b"not a backup at all" * 100,
    }
    for name, data in broken.items():
        bad, folder = tmp_path / f"{name}.tar", tmp_path / f"from-{name}"
        bad.write_bytes(data)
        refused = command("restore", bad, "--data-dir", folder)
        assert (refused.returncode, "use another" in refused.stderr) == (1, True), (name, refused.stderr)
        assert not folder.exists()
    assert [path for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    into = command("backup", crash.server.data_dir / "copy.tar", "--data-dir", crash.server.data_dir)
    assert into.returncode == 1


def test_the_doctor_finds_what_is_wrong(forge: Make, tmp_path: Path) -> None:
    crash = forge()
    crash.turn(crash.session(), "echo something")
    data = crash.server.data_dir
    healthy = command("doctor", "--data-dir", data)
    assert healthy.returncode == 0, healthy.stdout
    assert f"pid {crash.server.process.pid}" in healthy.stdout
    crash.server.stop()
    assert "not running" in command("doctor", "--data-dir", data).stdout
    data.chmod(0o755)
    opened = command("doctor", "--data-dir", data)
    assert (opened.returncode, f"chmod 700 {data}" in opened.stdout) == (1, True)
    data.chmod(0o700)
    database = data / "forge.db"
    pages = bytearray(database.read_bytes())
    pages[8192:12288] = b"x" * 4096
    database.write_bytes(pages)
    damaged = command("doctor", "--data-dir", data)
    assert (damaged.returncode, "clawdforge restore" in damaged.stdout) == (1, True), damaged.stdout
    nothing = command("doctor", "--data-dir", tmp_path / "nothing")
    assert nothing.returncode == 0
    assert not (tmp_path / "nothing").exists()
