"""Programs of the system find the settings that they are linked to in /etc, and nothing private is shown."""

import asyncio
import os
from pathlib import Path

import pytest

from clawdforge.drivers.processes.containment import probe
from clawdforge.drivers.processes.etc_links import MAX_SETTINGS, find_linked_settings
from clawdforge.drivers.processes.spawner import Spawner
from tests.needs import needs
from tests.unit.contained import SESSION


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A machine on which the settings of a program lie in a folder of /etc."""
    (tmp_path / "lib/jvm/jdk/conf").mkdir(parents=True)
    (tmp_path / "etc/java/security").mkdir(parents=True)
    (tmp_path / "etc/java/security/java.security").write_text("x")
    (tmp_path / "lib/jvm/jdk/conf/java.security").symlink_to(tmp_path / "etc/java/security/java.security")
    for folder, _, files in os.walk(tmp_path / "etc"):
        Path(folder).chmod(0o755)
        for name in files:
            Path(folder, name).chmod(0o644)
    return tmp_path


def find(top: Path, depth: int = 4) -> list[str]:
    return [mount.path.name for mount in find_linked_settings([(top / "lib", depth)], top / "etc")]


def test_the_folder_that_a_program_is_linked_to_is_found(top: Path) -> None:
    assert find(top) == ["java"]
    assert find(top, 3) == [], "the search has an end"
    (top / "etc/other").mkdir(mode=0o755)
    assert find(top) == ["java"], "without a link to it, a folder is nobody's need"
    (top / "lib/other").symlink_to("../etc/other")
    assert find(top) == ["java", "other"], "links may be relative"


@pytest.mark.parametrize("private", ["file", "folder", "itself", "pipe", "many"])
def test_a_folder_with_anything_private_in_it_is_not_shown(top: Path, private: str) -> None:
    inner = top / "etc/java/security"
    if private == "file":
        (inner / "java.security").chmod(0o640)
    elif private == "folder":
        inner.chmod(0o711)
    elif private == "itself":
        (top / "etc/java").chmod(0o750)
    elif private == "pipe":
        os.mkfifo(inner / "pipe")
    else:
        for number in range(MAX_SETTINGS):
            (inner / str(number)).symlink_to("x")
        (inner / "last").mkdir(mode=0o755)
        (inner / "last" / "file").touch(mode=0o644)
    assert find(top) == []


@pytest.mark.parametrize("name", ["ssl", "ssh", "sudoers.d", "shadow", "linked", "missing"])
def test_keys_single_files_and_links_are_never_shown(top: Path, name: str) -> None:
    path = top / "etc" / name
    if name == "shadow":
        path.touch(mode=0o644)
    elif name == "linked":
        path.symlink_to(top / "etc/java")
    elif name != "missing":
        path.mkdir(mode=0o755)
    (top / "lib/x").symlink_to(path)
    assert find(top) == ["java"]


@needs("bwrap")
@needs("java")
async def test_the_java_of_the_system_finds_its_settings_in_a_sandbox(tmp_path: Path) -> None:
    """Without them it starts, and fails as soon as anything asks for a cipher."""
    data = tmp_path / "data"
    home, workspace = (data / kind / SESSION for kind in ("homes", "workspaces"))
    for folder in (home, workspace):
        folder.mkdir(parents=True)
    command = "keytool -genseckey -alias a -keyalg AES -keysize 128 -keystore store -storepass secret"
    process = await Spawner(probe("full"), data, "boot").spawn(
        command.split(), cwd=workspace, home=home, env={"PATH": "/usr/bin", "HOME": str(home)}, tag=SESSION
    )
    await asyncio.wait_for(process.wait(), 60)
    await process.close()
    assert (workspace / "store").exists(), process.stderr_tail()
