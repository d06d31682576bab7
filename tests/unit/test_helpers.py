"""What the server runs on agents' folders sees those folders and nothing else, and is bounded."""

import shutil
import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from clawdforge.drivers.processes import helpers, launcher
from clawdforge.drivers.processes.cgroups import find_cgroups
from clawdforge.drivers.processes.folder_identity import read_identity
from clawdforge.drivers.processes.group_trees import Ceilings
from clawdforge.drivers.processes.helpers import Folder, HelperFailed, Helpers, hold_folder
from clawdforge.drivers.processes.walls import find_walls
from tests.needs import needs
from tests.unit.contained import groups_of

SHELL = "/bin/sh"
RUNAWAY = "setsid sleep 317 & sleep 317"


def run(helpers: Helpers, folder: Path, script: str, *, writable: bool = False, timeout: float = 20.0) -> str:
    with hold_folder(folder, "/folder", writable=writable) as held:
        env = {"PATH": "/usr/bin:/bin"}
        words = [SHELL, "-c", script]
        return helpers.run(words, [held], cwd=held, env=env, timeout=timeout).decode()


@pytest.fixture
def contained() -> Helpers:
    return Helpers(shutil.which("bwrap"))


@needs("bwrap")
def test_it_sees_its_folder_and_the_system_only(contained: Helpers, tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.write_text("secret")
    (inside / "mine").write_text("mine")
    (inside / "link").symlink_to(outside)
    assert run(contained, inside, "cat mine") == "mine"
    with pytest.raises(HelperFailed, match="No such file"):
        run(contained, inside, "cat link")
    assert run(Helpers(None), inside, "cat link") == "secret"
    system = {"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "nix"}
    assert set(run(contained, inside, "ls /").split()) <= {*system, "dev", "tmp", "folder"}
    assert "passwd" not in run(contained, inside, "ls /etc")


def test_what_a_dead_helper_leaves_behind_is_not_waited_for(tmp_path: Path) -> None:
    """As bwrap's child, where bwrap is killed: a stop of the server waited a minute for it."""
    began = time.monotonic()
    assert run(Helpers(None), tmp_path, "echo said; sleep 319 & exit 0", timeout=600) == "said\n"
    assert time.monotonic() - began < 300
    left = [one for one in psutil.process_iter(["cmdline"]) if one.info["cmdline"] == ["sleep", "319"]]
    assert psutil.wait_procs(left, timeout=60)[1] == []


@needs("bwrap")
def test_it_writes_only_where_it_may(contained: Helpers, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(HelperFailed, match="Read-only"):
        run(contained, folder, "touch a")
    run(contained, folder, "touch a", writable=True)
    assert (folder / "a").exists()
    with pytest.raises(HelperFailed, match="Read-only"):
        run(contained, folder, "touch /a", writable=True)


@needs("landlock")
def test_without_bubblewrap_it_reaches_its_folder_and_the_system_only(tmp_path: Path) -> None:
    walled, inside, outside = Helpers(None, find_walls()), tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (inside / "link").symlink_to(outside)
    run(walled, inside, "touch mine && cat mine > /dev/null", writable=True)
    with pytest.raises(HelperFailed, match="Permission denied"):
        run(walled, inside, "touch other")
    for script in (
        "cat link/secret",
        "touch link/new",
        "ls link/",
        f"cat {outside}/secret",
        "rm link/secret",
    ):
        with pytest.raises(HelperFailed, match="Permission denied"):
            run(walled, inside, script, writable=True)
        run(Helpers(None), inside, script, writable=True)
        (outside / "secret").write_text("secret")


@needs("bwrap")
def test_it_has_no_network(contained: Helpers, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 2)"
        python = shutil.which("python3", path="/usr/bin:/bin")
        if python is None:
            pytest.skip("the system has no Python of its own")
        with pytest.raises(HelperFailed, match=r"refused|unreachable"):
            run(contained, tmp_path, f'{python} -c "{code}"')


@needs("bwrap")
def test_what_was_mounted_in_its_place_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An old bwrap mounts by a path, under which something else may lie by then."""
    other = tmp_path / "other"
    other.mkdir()

    def compare_another(_helpers: Helpers, folders: Sequence[Folder]) -> Iterator[str]:
        state = other.stat()
        return iter([word for one in folders for word in (one.name, f"{state.st_dev}:{state.st_ino}")])

    older = Helpers(shutil.which("bwrap"))
    older._mounts_fds = False
    assert run(older, tmp_path, "echo fine") == "fine\n"
    monkeypatch.setattr(Helpers, "_list_compared", compare_another)
    with pytest.raises(HelperFailed, match="/folder was replaced while it was mounted"):
        run(older, tmp_path, "echo fine")


@needs("bwrap")
def test_a_folder_is_the_one_that_was_opened(contained: Helpers, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "mine").write_text("mine")
    with hold_folder(folder, "/folder") as held:
        folder.rename(tmp_path / "aside")
        folder.symlink_to("/etc")
        env = {"PATH": "/usr/bin:/bin"}
        assert contained.run([SHELL, "-c", "ls"], [held], cwd=held, env=env, timeout=20) == b"mine\n"
    with pytest.raises(HelperFailed, match="replaced by a link"), hold_folder(folder, "/folder"):
        pass
    (tmp_path / "above").symlink_to(tmp_path)
    with pytest.raises(HelperFailed, match="replaced"), hold_folder(tmp_path / "above" / "aside", "/folder"):
        pass


@pytest.mark.parametrize("bwrap", [None, pytest.param("bwrap", marks=needs("bwrap"))])
def test_it_is_bounded_in_memory_and_time(bwrap: str | None, tmp_path: Path) -> None:
    helpers = Helpers(shutil.which(bwrap) if bwrap else None)
    with pytest.raises(HelperFailed, match=r"(?i)memory|space|alloc"):
        run(helpers, tmp_path, "awk 'BEGIN { s = \"x\"; while (length(s) < 5e9) s = s s }'")
    with pytest.raises(HelperFailed, match=r"took longer than 0\.5 s"):
        run(helpers, tmp_path, "sleep 1000; true", timeout=0.5)  # a child of its own, which holds the pipe


@needs("cgroups")
@pytest.mark.parametrize("bwrap", [None, pytest.param("bwrap", marks=needs("bwrap"))])
def test_it_has_a_group_of_its_own_which_is_gone_afterwards(
    bwrap: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(helpers, "CEILINGS", Ceilings(processes=20, memory=64 << 20))
    groups = find_cgroups(tmp_path, "boot", Ceilings(processes=1000, memory=1 << 30))
    program = shutil.which(bwrap) if bwrap else None
    limited, free = Helpers(program, groups=groups), Helpers(program)
    many = 'for n in $(seq 40); do sleep 60 >/dev/null & all="$all $!"; done; kill $all'
    much = "awk 'BEGIN { s = \"x\"; while (length(s) < 5e7) s = s s }'"
    for script in (many, much):
        run(free, tmp_path, script)
        with pytest.raises(HelperFailed):
            run(limited, tmp_path, script)
        assert not groups_of(tmp_path)
    with pytest.raises(HelperFailed, match="took longer"):
        run(limited, tmp_path, RUNAWAY, timeout=0.5)
    assert not groups_of(tmp_path)


def test_a_process_that_runs_away_with_the_pipe_keeps_nobody_waiting(tmp_path: Path) -> None:
    with pytest.raises(HelperFailed, match="took longer"):
        run(Helpers(None), tmp_path, RUNAWAY, timeout=0.5)
    # Without a sandbox and without a group nothing finds it, which is why there are both.
    for process in psutil.process_iter(["cmdline"]):
        if process.info["cmdline"] == ["sleep", "317"]:
            process.kill()


@needs("bwrap")
def test_nothing_of_it_is_left_for_a_server_that_adopts_orphans(contained: Helpers, tmp_path: Path) -> None:
    """bwrap ends before the first process of its sandbox, which is then the server's to reap."""
    launcher.prctl(launcher.PR_SET_CHILD_SUBREAPER, 1)
    try:
        before = zombies()
        for _ in range(20):
            run(contained, tmp_path, "true")
        with pytest.raises(HelperFailed, match="took longer"):
            run(contained, tmp_path, "sleep 30", timeout=0.3)
        assert zombies() <= before
    finally:
        launcher.prctl(launcher.PR_SET_CHILD_SUBREAPER, 0)


def zombies() -> set[int]:
    return {child.pid for child in psutil.Process().children() if child.status() == psutil.STATUS_ZOMBIE}


@needs("bwrap")
def test_it_has_no_descriptor_of_its_folders(contained: Helpers, tmp_path: Path) -> None:
    """From one it could walk up, past all mounts."""
    script = "for fd in 3 4 5 6 7 8 9; do (: <&$fd) 2>/dev/null && echo $fd; done; echo end"
    assert run(contained, tmp_path, script) == "end\n"


def test_what_it_prints_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helpers, "MAX_OUTPUT", 1000)
    with pytest.raises(HelperFailed, match="printed more than 1000 bytes"):
        run(Helpers(None), tmp_path, "cat /dev/zero")


def test_a_folder_that_is_not_the_recorded_one_is_not_given_to_a_helper(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with hold_folder(folder, "/folder") as held:
        identity = read_identity(held.fd)
    with hold_folder(folder, "/folder", identity=identity):
        folder.rename(tmp_path / "aside")
    folder.mkdir()
    with (
        pytest.raises(HelperFailed, match="not the folder that it was"),
        hold_folder(folder, "/folder", identity=identity),
    ):
        raise AssertionError("another folder was given to the helper")


@pytest.mark.parametrize("bwrap", ["", pytest.param("bwrap", marks=needs("bwrap"))])
def test_what_comes_next_runs_in_the_same_sandbox_if_the_first_went_well(tmp_path: Path, bwrap: str) -> None:
    helpers = Helpers(shutil.which(bwrap) if bwrap else None)

    def run_both(first: str) -> bytes:
        with hold_folder(tmp_path, "/folder", writable=True) as held:
            return helpers.run(
                [SHELL, "-c", first],
                [held],
                cwd=held,
                env={"PATH": "/usr/bin:/bin"},
                timeout=20,
                given=b"given",
                then=[SHELL, "-c", "cat *"],
            )

    assert run_both("cat >'a b'; echo unheard") == b"given"
    with pytest.raises(HelperFailed, match="no more"):
        run_both("echo no more >&2; exit 3")
