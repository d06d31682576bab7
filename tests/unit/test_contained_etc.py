"""What an agent finds below /etc inside bubblewrap alone: settings that switch off a sandbox of its own."""

import asyncio
from pathlib import Path

import pytest

from clawdforge.core.models.agents import AgentSpec
from clawdforge.drivers.processes.environment import agent_env
from clawdforge.drivers.processes.policy import Policy
from clawdforge.drivers.processes.spawner import Spawner
from clawdforge.settings import BadSettings, load_settings
from tests.needs import needs
from tests.unit.contained import BOOT, LANDLOCK, SESSION, containment

BWRAP = [pytest.param(kind, marks=needs("bwrap")) for kind in ("bwrap", "bwrap-full")]
ETC = {"mine/walls.toml": "own = false\n"}
SPEC = AgentSpec(name="mine", command=("sh",), driver="acp", quirks={"contained_etc": ETC})


async def look(tmp_path: Path, kind: str, script: str) -> str:
    home, workspace = (tmp_path / "data" / folder / SESSION for folder in ("homes", "workspaces"))
    for folder in (home / ".tmp", workspace):
        folder.mkdir(parents=True)
    process = await Spawner(containment(kind), tmp_path / "data", BOOT).spawn(
        ["sh", "-c", f"{{ {script}; }} > told"],
        cwd=workspace,
        home=home,
        env=agent_env(SPEC, home, {}, kind),
        tag=SESSION,
        policy=Policy.of(SPEC),
    )
    await asyncio.wait_for(process.wait(), 60)
    await process.close()
    return (workspace / "told").read_text()


@pytest.mark.parametrize("kind", BWRAP)
async def test_inside_bubblewrap_it_is_there_and_cannot_be_changed(tmp_path: Path, kind: str) -> None:
    script = (
        "cat /etc/mine/walls.toml; ls /etc/mine; echo own = true > /etc/mine/walls.toml 2>&- || echo kept"
    )
    assert await look(tmp_path, kind, script) == "own = false\nwalls.toml\nkept\n"


@pytest.mark.parametrize("kind", [LANDLOCK, "tree"])
async def test_without_bubblewrap_its_own_sandbox_stays(tmp_path: Path, kind: str) -> None:
    assert await look(tmp_path, kind, "cat /etc/mine/walls.toml || echo not there") == "not there\n"


@pytest.mark.parametrize("name", ["passwd", "../x/y", "/mine/x", "mine/../passwd", "mine/", "mine/."])
def test_only_files_in_folders_of_etc_can_be_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / "clawdforge.toml"
    path.write_text(f'[agents.mine]\ncommand = "x"\nquirks = {{ contained_etc = {{ "{name}" = "x" }} }}')
    with pytest.raises(BadSettings, match="contained_etc"):
        load_settings({}, config=path)
