"""The program that runs acpx in a session's namespace: what it finds in records, and what it clears away."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from clawdforge.drivers.acpx.driver import HOST


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    folder = tmp_path / ".acpx" / "sessions"
    folder.mkdir(parents=True)
    return folder


def looked_up(home: Path, *names: str) -> list[object]:
    """What the host says of each record; its input stays open until it has."""
    found = []
    command = [sys.executable, "-I", "-S", str(HOST)]
    with subprocess.Popen(
        command, env={"HOME": str(home)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as host:
        assert host.stdin is not None
        assert host.stdout is not None
        for name in names:
            host.stdin.write(json.dumps({"run": name, "record": name}) + "\n")
            host.stdin.flush()
            found.append(json.loads(host.stdout.readline())["acpSessionId"])
            assert host.stdout.readline() == "\n"
            assert json.loads(host.stdout.readline())["run"] == name
        host.stdin.close()
    return found


def test_the_agents_own_id_is_in_the_record_and_nowhere_else(sessions: Path, tmp_path: Path) -> None:
    (sessions / "ours.json").write_text(json.dumps({"acp_session_id": "theirs"}))
    (sessions / "broken.json").write_text("[1")
    (sessions / "list.json").write_text("[1]")
    (sessions / "deep.json").write_text("[" * 200_000)
    (sessions / "odd.json").write_text(json.dumps({"acp_session_id": ["theirs"]}))
    (tmp_path / "outside.json").write_text(json.dumps({"acp_session_id": "not this"}))
    names = ("ours", "broken", "list", "deep", "odd", "missing", "../../outside")
    assert looked_up(tmp_path, *names) == ["theirs", *[None] * 6]


def test_locks_of_the_dead_are_cleared_and_records_stay(sessions: Path, tmp_path: Path) -> None:
    queues = tmp_path / ".acpx" / "queues"
    queues.mkdir()
    (queues / "a.lock").touch()
    for name in ("a.json", "a.stream.ndjson", "a.stream.lock", "a.stream.lock.guard"):
        (sessions / name).touch()
    looked_up(tmp_path, "a")
    assert sorted(path.name for path in sessions.iterdir()) == ["a.json", "a.stream.ndjson"]
    assert not queues.exists()


def test_a_lock_that_cannot_be_cleared_does_not_keep_the_others(sessions: Path, tmp_path: Path) -> None:
    """Folders are not unlinked; there are enough for one of them to come before a file."""
    for number in range(20):
        (sessions / f"{number}.folder.lock").mkdir()
        (sessions / f"{number}.file.lock").touch()
    looked_up(tmp_path, "a")
    assert not list(sessions.glob("*.file.lock"))
    assert len(list(sessions.glob("*.folder.lock"))) == 20
