"""Records one workspace's files at turn boundaries in a separate git repository, never in its own `.git`.

`refs/turns/N` names the tree after turn N (0: before the first), `refs/kept/<tree>` what an undo replaced,
`refs/forked/begun` what a fork found when it was made. Turns that left an empty workspace, before there was
anything to record, are in a list (`recorded_turns.py`).
Files that git ignores are neither recorded nor touched. Nested repositories are left out.
"""

import contextlib
import os
import shutil
import stat
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from clawdforge.drivers.folders.recorded_turns import (
    EMPTY_TREE,
    PRUNE_EVERY,
    TREE,
    find_tree,
    has_files,
    has_recorded,
    is_empty,
    list_turns,
    note_empty_turn,
    read_empty_turns,
    read_tree_name,
    remove_oldest,
    write_empty_turns,
)
from clawdforge.drivers.folders.tree_removal import delete_tree
from clawdforge.drivers.folders.tree_walk import open_below, open_folder, read_small_file
from clawdforge.drivers.processes.helpers import Folder, HelperFailed, Helpers, hold_folder

MAX_PATHS: Final = 50_000
MAX_BYTES: Final = 1 << 30
TIDY_EVERY: Final = 13  # times: git then looks through all that it has
MAX_EXCLUDES: Final = 1 << 16
MAX_REASON: Final = 300
GIT_SECS: Final = 60.0
UMASK: Final = 0o022  # restored files are readable as before; the folders around them are private
CONFIG: Final = """[core]
\trepositoryformatversion = 0
\tbare = false
\tautocrlf = false
\tfsmonitor = false
\thooksPath = /dev/null
\tcompression = 1
\tbigFileThreshold = 16m
[gc]
\tauto = 0
\tpackRefs = false
"""
ATTRIBUTES: Final = "* -text -eol -filter -ident -working-tree-encoding\n"


class NoSnapshot(Exception):
    """The workspace cannot be recorded or restored; the message says why."""


class Shadow:
    """The repository of one session. Its methods block; one caller at a time."""

    def __init__(
        self,
        folder: Path,
        workspace: Path,
        git: str,
        helpers: Helpers,
        identity: str | None = None,
        *,
        app: str | None = None,
    ) -> None:
        """`identity` is what was recorded of the workspace: in any other folder nothing is done."""
        self._folder = folder
        self._place = str(folder)  # after every turn, and far faster
        self._workspace = workspace
        self._identity = identity
        self._git_program = git
        self._helpers = helpers
        self._app = app

    def has_turns(self) -> bool:
        return has_recorded(self._folder)

    def find_turn(self, turn_index: int) -> str | None:
        """The name of the tree that was recorded at the end of a turn."""
        return find_tree(self._folder, turn_index)

    def record_turn(self, turn_index: int, paused: AbstractContextManager[None] | None = None) -> str:
        """Record the workspace, inside the block in which its agent stands still."""
        if not has_files(self._place) and self._is_empty():
            note_empty_turn(self._place, turn_index)
            return EMPTY_TREE
        with paused or contextlib.nullcontext():
            tree = self.write_tree()
        self._name_tree("turns", str(turn_index), tree)
        if turn_index % PRUNE_EVERY == 0:
            self._prune(is_thorough=turn_index % (PRUNE_EVERY * TIDY_EVERY) == 0)
        return tree

    def note_missing(self, turn_index: int, why: str) -> None:
        """Keep why a turn was not recorded, for whoever wants to go back to it."""
        folder = self._folder / "missing"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        (folder / str(turn_index)).write_text(why[:MAX_REASON])
        remove_oldest(folder)

    def find_missing(self, turn_index: int) -> str | None:
        with contextlib.suppress(FileNotFoundError):
            return (self._folder / "missing" / str(turn_index)).read_text()
        return None

    def record_present(self) -> str:
        """Record the workspace as it is now, on stable storage, for a later redo."""
        tree = self.write_tree(durable=True)
        self._name_tree("kept", tree, tree)
        return tree

    def restore(self, tree: str) -> None:
        """Make the workspace equal to a tree. Repeating it after a crash gives the same result."""
        if not TREE.fullmatch(tree):
            raise NoSnapshot(f"{tree!r} is not the name of a tree")
        if not has_files(self._place):
            if tree == EMPTY_TREE:
                return
            raise NoSnapshot("nothing was recorded of this workspace")
        (self._folder / "tree").unlink(missing_ok=True)
        self._git("read-tree", "--reset", "-u", tree, restores=True)

    def write_tree(self, *, durable: bool = False) -> str:
        """Store the present state as a tree and return its name. Cheap when nothing has changed since."""
        if not has_files(self._place):
            if self._is_empty():
                return EMPTY_TREE
            self._create()
        listed = self._git("ls-files", "-z", "-m", "-o", "-d", "--exclude-standard")
        paths = {path for path in listed.split(b"\0") if path and not path.endswith(b"/")}
        last = self._folder / "tree"
        if not paths and last.exists():
            return last.read_text()
        last.unlink(missing_ok=True)
        wanted = self._select_paths(paths)
        sync = ("-c", "core.fsync=loose-object,pack,pack-metadata,index") if durable else ()
        update = (*sync, "update-index", "--add", "--remove", "--replace", "-z", "--stdin")
        tree = self._git(*update, stdin=wanted, then=(*sync, "write-tree")).decode().strip()
        last.write_text(tree)
        return tree

    def copy_to(self, other: Path, through: int) -> None:
        """Copy what is known up to a turn for another session, which counts its own turns from there.

        Objects never change, so they are hard-linked.
        """
        temporary = other.with_name(f".new-{other.name}")
        delete_tree(temporary)
        temporary.mkdir(parents=True, mode=0o700)
        if turns := read_empty_turns(self._folder):
            write_empty_turns(temporary, (turn_index for turn_index in turns if turn_index <= through))
        with contextlib.suppress(FileNotFoundError):
            shutil.copytree(self._folder / "refs", temporary / "refs")
        if has_files(self._place):
            shutil.copytree(self._folder / "objects", temporary / "objects", copy_function=os.link)
            for name in ("HEAD", "config", "index", "tree"):
                with contextlib.suppress(FileNotFoundError):
                    shutil.copy2(self._folder / name, temporary / name)
            shutil.copytree(self._folder / "info", temporary / "info")
        with contextlib.suppress(FileNotFoundError):
            shutil.copytree(self._folder / "missing", temporary / "missing")
        for kind in ("refs/turns", "missing"):
            for turn_index in list_turns(temporary / kind):
                if turn_index > through:
                    (temporary / kind / str(turn_index)).unlink()
        begun = read_tree_name(self._folder / "tree")
        if begun is not None:
            (temporary / "refs" / "forked").mkdir(parents=True, exist_ok=True, mode=0o700)
            (temporary / "refs" / "forked" / "begun").write_text(f"{begun}\n")
        temporary.rename(other)

    def _is_empty(self) -> bool:
        try:
            return is_empty(self._workspace)
        except OSError as error:
            raise NoSnapshot(f"the workspace cannot be read: {error.strerror}") from error

    def _create(self) -> None:
        for name in ("objects", "refs", "info"):
            (self._folder / name).mkdir(parents=True, exist_ok=True, mode=0o700)
        (self._folder / "config").write_text(CONFIG)
        (self._folder / "info" / "attributes").write_text(ATTRIBUTES)
        (self._folder / "HEAD").write_text("ref: refs/heads/none\n")

    def _select_paths(self, paths: set[bytes]) -> bytes:
        """The changed paths as input for git, without unreadable files. Raises if there are too many."""
        if len(paths) > MAX_PATHS:
            raise NoSnapshot(f"more than {MAX_PATHS} files have changed")
        total, wanted = 0, []
        with open_folder(self._workspace) as root:
            for path in sorted(paths):
                *folders, name = path.split(b"/")
                with contextlib.suppress(OSError), open_below(root, folders) as folder:  # else it is gone
                    info = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    total += info.st_size
                    if total > MAX_BYTES:
                        raise NoSnapshot(f"more than {MAX_BYTES} bytes have changed")
                    if stat.S_ISREG(info.st_mode) and not os.access(name, os.R_OK, dir_fd=folder):
                        continue
                wanted.append(path)
        return b"".join(path + b"\0" for path in wanted)

    def _name_tree(self, kind: str, name: str, tree: str) -> None:
        try:
            self._put_name(kind, name, tree)
        except FileNotFoundError:
            (self._folder / "refs" / kind).mkdir(parents=True, exist_ok=True, mode=0o700)
            self._put_name(kind, name, tree)

    def _put_name(self, kind: str, name: str, tree: str) -> None:
        temporary = f"{self._place}/.new-{kind}"
        with open(temporary, "wb", buffering=0) as file:  # noqa: PTH123
            file.write(f"{tree}\n".encode())
        os.replace(temporary, f"{self._place}/refs/{kind}/{name}")  # noqa: PTH105

    def _prune(self, *, is_thorough: bool) -> None:
        went = remove_oldest(self._folder / "refs" / "turns")
        if went and is_thorough and has_files(self._place):
            self._git("gc", "--quiet", "--prune=now")

    def _git(
        self, *words: str, stdin: bytes = b"", restores: bool = False, then: Sequence[str] = ()
    ) -> bytes:
        """Run git, and once more for `then`. It sees the workspace and this repository, and nothing else."""
        (self._folder / "index.lock").unlink(missing_ok=True)  # left by a crash: there is only one caller
        self._copy_excludes()
        try:
            with (
                hold_folder(
                    self._workspace, "/workspace", writable=restores, identity=self._identity
                ) as workspace,
                hold_folder(self._folder, "/repository", writable=True) as repository,
            ):
                return self._helpers.run(
                    [self._git_program, *words],
                    [workspace, repository],
                    cwd=workspace,
                    env=self._environment(repository, workspace),
                    timeout=GIT_SECS,
                    given=stdin,
                    umask=UMASK if restores else -1,
                    app=self._app,
                    then=(self._git_program, *then) if then else (),
                )
        except HelperFailed as error:
            raise NoSnapshot(str(error)) from error

    def _copy_excludes(self) -> None:
        """What the workspace's own repository ignores by itself, read without following or waiting."""
        excludes = b""
        with (
            contextlib.suppress(OSError),
            open_folder(self._workspace) as workspace,
            open_folder(".git", workspace) as git,
            open_folder("info", git) as info,
        ):
            excludes = read_small_file(info, "exclude", MAX_EXCLUDES)
        (self._folder / "info" / "exclude").write_bytes(excludes)

    def _environment(self, repository: Folder, workspace: Folder) -> Mapping[str, str]:
        """Keeps git away from the operator's settings and from the workspace's own repository."""
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": "/nonexistent",
            "LC_ALL": "C",
            "GIT_DIR": self._helpers.place_of(repository),
            "GIT_WORK_TREE": self._helpers.place_of(workspace),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_OPTIONAL_LOCKS": "1",
        }
