"""One workspace's files at turn boundaries, as trees in a git repository beside it: never in its own `.git`.

`refs/turns/N` names the tree after turn N (0: before the first), `refs/kept/<tree>` what an undo replaced.
What git ignores there is not kept and not touched. Folders that are repositories of their own are left out.
"""

import contextlib
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from clawdforge.drivers.folders.file_copy import delete_tree

EMPTY_TREE: Final = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
TREE: Final = re.compile(r"[0-9a-f]{40}")
MAX_PATHS: Final = 50_000
MAX_BYTES: Final = 1 << 30
MAX_TURNS: Final = 200
GIT_SECS: Final = 60.0
UMASK: Final = 0o022  # what is put back can be read as before; the folders around it are closed
CONFIG: Final = """[core]
\trepositoryformatversion = 0
\tbare = false
\tautocrlf = false
\tfsmonitor = false
\thooksPath = /dev/null
\tlooseCompression = 1
[gc]
\tauto = 0
\tpackRefs = false
"""
ATTRIBUTES: Final = "* -text -eol -filter -ident -working-tree-encoding\n"


class NoSnapshot(Exception):
    """The workspace cannot be kept or put back; the words say why."""


class Shadow:
    """Blocking; one caller at a time."""

    def __init__(self, folder: Path, workspace: Path, git: str) -> None:
        self._folder = folder
        self._workspace = workspace
        self._git_program = git

    def known(self) -> bool:
        return (self._folder / "refs" / "turns").is_dir()

    def turn(self, turn_index: int) -> str | None:
        """The tree of a turn's end."""
        try:
            name = (self._folder / "refs" / "turns" / str(turn_index)).read_text().strip()
        except FileNotFoundError:
            return None
        return name if TREE.fullmatch(name) else None

    def take(self, turn_index: int) -> str:
        tree = self.tree()
        self._mark("turns", str(turn_index), tree)
        self._prune()
        return tree

    def keep(self) -> str:
        """The present, named for a redo, on stable storage."""
        tree = self.tree(durable=True)
        self._mark("kept", tree, tree)
        return tree

    def restore(self, tree: str) -> None:
        """From whatever is there to a tree. Done again after a crash in the middle, it ends the same."""
        if not TREE.fullmatch(tree):
            raise NoSnapshot(f"{tree!r} is not the name of a tree")
        if not self._begun():
            if tree == EMPTY_TREE:
                return
            raise NoSnapshot("nothing was kept of this workspace")
        (self._folder / "tree").unlink(missing_ok=True)
        self._git("read-tree", "--reset", "-u", tree, umask=UMASK)

    def tree(self, *, durable: bool = False) -> str:
        """The name of the present state. Cheap when nothing has changed since the last one."""
        if not self._begun():
            if self._is_empty():
                return EMPTY_TREE
            self._begin()
        listed = self._git("ls-files", "-z", "-m", "-o", "-d", "--exclude-standard")
        paths = {path for path in listed.split(b"\0") if path and not path.endswith(b"/")}
        last = self._folder / "tree"
        if not paths and last.exists():
            return last.read_text()
        last.unlink(missing_ok=True)
        wanted = self._within_bounds(paths)
        sync = ("-c", "core.fsync=loose-object,index") if durable else ()
        self._git(*sync, "update-index", "--add", "--remove", "--replace", "-z", "--stdin", given=wanted)
        tree = self._git(*sync, "write-tree").decode().strip()
        last.write_text(tree)
        return tree

    def copy_to(self, other: Path) -> None:
        """All that is known, for another session. Objects never change, so they are linked."""
        half = other.with_name(f".new-{other.name}")
        delete_tree(half)
        shutil.copytree(self._folder / "refs", half / "refs")
        if self._begun():
            shutil.copytree(self._folder / "objects", half / "objects", copy_function=os.link)
            for name in ("HEAD", "config", "index", "tree"):
                with contextlib.suppress(FileNotFoundError):
                    shutil.copy2(self._folder / name, half / name)
            shutil.copytree(self._folder / "info", half / "info")
        half.rename(other)

    def _begun(self) -> bool:
        return (self._folder / "HEAD").exists()

    def _is_empty(self) -> bool:
        try:
            with os.scandir(self._workspace) as entries:
                return not any(entry.name != ".git" for entry in entries)
        except OSError as error:
            raise NoSnapshot(f"the workspace cannot be read: {error.strerror}") from error

    def _begin(self) -> None:
        for name in ("objects", "refs", "info"):
            (self._folder / name).mkdir(parents=True, exist_ok=True, mode=0o700)
        (self._folder / "config").write_text(CONFIG)
        (self._folder / "info" / "attributes").write_text(ATTRIBUTES)
        (self._folder / "HEAD").write_text("ref: refs/heads/none\n")

    def _within_bounds(self, paths: set[bytes]) -> bytes:
        """The paths that git is to look at. What cannot be read is left out."""
        if len(paths) > MAX_PATHS:
            raise NoSnapshot(f"more than {MAX_PATHS} files have changed")
        total, wanted = 0, []
        root = os.fsencode(self._workspace)
        for path in sorted(paths):
            full = os.path.join(root, path)  # noqa: PTH118 - bytes, as git names them
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                info = os.lstat(full)
                total += info.st_size
                if stat.S_ISREG(info.st_mode) and not os.access(full, os.R_OK):
                    continue
            wanted.append(path)
        if total > MAX_BYTES:
            raise NoSnapshot(f"more than {MAX_BYTES} bytes have changed")
        return b"".join(path + b"\0" for path in wanted)

    def _mark(self, kind: str, name: str, tree: str) -> None:
        folder = self._folder / "refs" / kind
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        half = self._folder / f".new-{kind}"
        half.write_text(f"{tree}\n")
        half.replace(folder / name)

    def _prune(self) -> None:
        folder = self._folder / "refs" / "turns"
        turns = sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit())
        if len(turns) <= 2 * MAX_TURNS:
            return
        for turn_index in turns[:-MAX_TURNS]:
            (folder / str(turn_index)).unlink()
        if self._begun():
            self._git("gc", "--quiet", "--prune=now")

    def _git(self, *words: str, given: bytes = b"", umask: int = -1) -> bytes:
        (self._folder / "index.lock").unlink(missing_ok=True)  # left by a crash: nobody else is here
        excludes = self._workspace / ".git" / "info" / "exclude"
        command = [self._git_program, "-c", f"core.excludesFile={excludes}", *words]
        try:
            ran = subprocess.run(
                command,
                input=given,
                capture_output=True,
                cwd=self._workspace,
                env=self._environment(),
                timeout=GIT_SECS,
                umask=umask,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise NoSnapshot(f"git took longer than {GIT_SECS:g} s") from None
        except OSError as error:
            raise NoSnapshot(f"git could not be run: {error.strerror}") from error
        if ran.returncode:
            raise NoSnapshot(ran.stderr.decode("utf-8", "replace").strip()[-500:] or "git failed")
        return ran.stdout

    def _environment(self) -> Mapping[str, str]:
        """Nothing of the operator's settings, nothing of the workspace's own repository."""
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": "/nonexistent",
            "LC_ALL": "C",
            "GIT_DIR": str(self._folder),
            "GIT_WORK_TREE": str(self._workspace),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_OPTIONAL_LOCKS": "1",
        }
