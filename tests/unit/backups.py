"""A data folder with one workspace, and a backup of it, for the tests of backups and of restoring."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from clawdforge.core.clock import SystemClock
from clawdforge.drivers.folders.tree_removal import delete_tree
from clawdforge.stores import open_store
from clawdforge.upkeep.backup import Summary, backup


async def make_data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    store = await open_store(folder, SystemClock())
    await store.close()
    return folder


@contextmanager
def one_workspace(data: Path) -> Iterator[Path]:
    folder = data / "workspaces" / "s1"
    folder.mkdir(parents=True)
    (folder / "kept").write_text("kept")
    yield folder
    delete_tree(folder)  # pytest cannot delete what is deep


def back_up(data: Path, name: str = "copy.tar", **more: Any) -> Summary:
    return backup(data, data.parent / name, SystemClock(), **more)
