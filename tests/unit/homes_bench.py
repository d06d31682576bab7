"""What tests of homes share: an operator with credentials, folders on a data folder, and ways to look."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from clawdforge.core.models.agents import AgentSpec
from clawdforge.drivers.folders.homes import HomeFolders
from tests.unit.contained import SESSION

AGENT = AgentSpec(name="a", driver="acp", command=("a",), credentials=(".agent/token.json", ".absent"))
OTHER = "fork-1"


@contextlib.asynccontextmanager
async def homes_on(tmp_path: Path) -> AsyncIterator[HomeFolders]:
    """On `tmp_path/data`, with the operator's home in `tmp_path/operator`."""
    operator = tmp_path / "operator"
    (operator / ".agent").mkdir(parents=True)
    (operator / ".agent" / "token.json").write_text("shared")
    folders = HomeFolders(tmp_path / "data", operator_home=operator, max_copies=5, max_bytes=1_000_000)
    folders.clean_up_unfinished()
    yield folders
    await folders.close()


async def kept(homes: HomeFolders, turn: int, session: str = SESSION) -> None:
    await homes.copy_home(session, turn, f"agent-{turn}", None)
    await homes.close()


def objects(data: Path, session: str = SESSION) -> set[str]:
    return {path.name for path in (data / "copies" / session / "files").iterdir()}


def tree(home: Path) -> dict[str, str]:
    return {
        str(path.relative_to(home)): str(path.readlink()) if path.is_symlink() else path.read_text()
        for path in sorted(home.rglob("*"))
        if path.is_symlink() or path.is_file()
    }
