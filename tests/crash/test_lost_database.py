"""A database that is missing, empty or older than the folders beside it: nothing of theirs is lost."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.api.harness import until
from tests.crash.kit import Forge
from tests.support.folders import files_below

pytestmark = pytest.mark.slow


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in files_below(folder)}


def remove_database(data: Path) -> None:
    for path in data.glob("forge.db*"):
        path.unlink()


@pytest.mark.parametrize("left", ["nothing", "an empty file"])
def test_without_its_database_a_server_does_not_start(forge: Callable[..., Forge], left: str) -> None:
    crash = forge()
    session_id = crash.session()
    crash.turn(session_id, "echo remember this")
    crash.server.stop()
    data = crash.server.data_dir
    kept = data.with_name("kept")
    kept.mkdir()
    for path in data.glob("forge.db*"):
        shutil.copy2(path, kept)
    remove_database(data)
    if left == "an empty file":
        (data / "forge.db").touch()
    before = files(data / "homes") | files(data / "copies")
    with pytest.raises(AssertionError, match="missing or empty"):
        crash.server.start()
    assert "Traceback" not in crash.server.log_text
    assert files(data / "homes") | files(data / "copies") == before
    remove_database(data)
    for path in kept.iterdir():
        shutil.copy2(path, data)
    crash.restart()
    assert "echo remember this" in crash.remembered(session_id)


@pytest.mark.parametrize(("known", "unknown"), [(1, 3), (3, 1)])
def test_with_an_older_database_no_memory_is_deleted(
    forge: Callable[..., Forge], known: int, unknown: int
) -> None:
    """Of a few sessions that it does not know, homes are set aside; of many, it is rather the database."""
    crash = forge()
    for _ in range(known):
        crash.turn(crash.session(), "echo old")
    crash.server.stop()
    data = crash.server.data_dir
    older = data.with_name("older.db")
    shutil.copy2(data / "forge.db", older)
    crash.restart()
    later = [crash.session() for _ in range(unknown)]
    for session_id in later:
        crash.turn(session_id, "echo new")
    crash.server.stop()
    remove_database(data)
    shutil.copy2(older, data / "forge.db")
    crash.restart()
    until(lambda: "belong to" in crash.server.log_text, "what the server says of the folders")
    crash.server.stop()
    for session_id in later:
        home = data / "homes" / session_id
        if unknown < known:
            (lost,) = (data / "lost").glob(f"{session_id}.*")
            assert {path.name for path in lost.iterdir()} >= {"homes", "copies"}
            assert not home.exists()
            home = lost / "homes"
        assert "echo new" in "".join(path.read_text() for path in home.glob(".scripted/*.jsonl"))
