"""Whom an agent runs as, and that its folders belong to that user.

Where the server is root, the agents of each app are a user of their own (`users.py`); what the server puts
into their folders belongs to that user as well. The owner and group of the top of a home or workspace say
whose the whole tree is: they are changed last, and the group is taken away before anybody else writes there.
So after a crash, a restore or a change of settings the next start sees that the tree has to be walked again.
"""

import contextlib
import logging
import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Self

from clawdforge.core.models.agents import Launch
from clawdforge.core.services.access import LOCAL_APP
from clawdforge.drivers.folders import app_credentials
from clawdforge.drivers.folders.home_lock import run_to_end
from clawdforge.drivers.folders.tree_walk import Found, Limits, TreeTooLarge, open_folder, walk_tree
from clawdforge.drivers.processes.containment import NAMESPACES, Containment
from clawdforge.drivers.processes.users import Numbers, RunsAs, User, UserTable
from clawdforge.wire.errors import AgentStartFailed

log = logging.getLogger(__name__)

LIMITS: Final = Limits(entries=1_000_000, depth=128, seconds=120.0)
"""A session's agent waits meanwhile; this happens once, or after something was put back."""


class Ownership:
    """Decides for the agents of one data folder. Without a table, all of them run as the server's user.

    `refusal` is why apps cannot have users though the operator asked for it: then none but `local` starts.
    """

    def __init__(
        self,
        data_dir: Path,
        containment: Containment,
        table: UserTable | None = None,
        refusal: str | None = None,
    ) -> None:
        self._data_dir = data_dir.resolve()
        self._containment = containment
        self._table = table
        self._refusal = refusal

    @classmethod
    def find(cls, data_dir: Path, containment: Containment, setting: str) -> Self:
        """By the operator's setting and what was found to work. A range that was asked for is insisted on."""
        if containment.uid:
            return cls(data_dir, containment, UserTable(data_dir, Numbers.parse(setting, data_dir)))
        why = containment.why_no_users
        if why is not None:
            log.warning("the agents of all apps run as one user: %s", why)
        return cls(
            data_dir,
            containment,
            refusal=None if setting in ("auto", "off") else why or "it needs bubblewrap",
        )

    async def choose_user(
        self, app: str, home: Path, cwd: Path, sandbox: str | None, shared: Sequence[Path]
    ) -> RunsAs:
        """Whom the agent is started as; its home, and its workspace if it is one of ours, are that user's.

        `shared` are the operator's files that it may write. A user of its own gets copies of them.
        """
        return await run_to_end(partial(self.choose_now, app, home, cwd, sandbox, shared))

    def choose_now(
        self, app: str, home: Path, cwd: Path, sandbox: str | None, shared: Sequence[Path]
    ) -> RunsAs:
        """What `choose_user` does, for a thread."""
        if os.geteuid() != 0 and self._refusal is None:
            return RunsAs(writable=tuple(shared))
        user = self._choose(app, cwd, sandbox)
        folders = [folder for folder in ([home, cwd] if self._is_ours(cwd) else [home]) if folder.is_dir()]
        if user is None:
            for folder in folders:
                disown(folder)
            return RunsAs(writable=tuple(shared))
        try:
            for folder in folders:
                give_tree(folder, user)
            copies = app_credentials.exchange(self._data_dir, user, shared)
        except OSError as error:
            raise AgentStartFailed(
                f"a folder could not be given to the user {user.uid} of this app: {error}; keep the data"
                " folder on a disk where root may do so, or set CLAWDFORGE_AGENT_UIDS=off"
            ) from error
        return RunsAs(user, (), copies)

    def _choose(self, app: str, cwd: Path, sandbox: str | None) -> User | None:
        if app == LOCAL_APP:
            return None
        if self._refusal is not None:
            raise AgentStartFailed(
                f"agents cannot run as users of CLAWDFORGE_AGENT_UIDS ({self._refusal}); mend that, or set it"
                " to auto or off"
            )
        if self._table is None or self._containment.choose(sandbox) not in NAMESPACES:
            return None
        return self._table.user_of(app) if self._is_ours(cwd) else _owner_of(cwd)

    def _is_ours(self, cwd: Path) -> bool:
        return cwd.resolve().is_relative_to(self._data_dir)


def _owner_of(folder: Path) -> User | None:
    """A folder of the operator's is worked in as its owner, so that both can go on with the files.

    None if it is root's: then only as the server.
    """
    try:
        info = folder.stat()
    except OSError:
        return None  # the start will say that the folder is gone
    return User(info.st_uid, info.st_gid or info.st_uid) if info.st_uid else None


def give_tree(path: Path, user: User) -> None:
    """Make everything below a folder belong to the user, and then the folder itself. Blocks.

    Nothing is done where the folder is the user's already. Raises AgentStartFailed when there is too much.
    """
    with open_folder(path) as root:
        if _is_of(os.fstat(root), user):
            return
        left: list[str] = []
        try:
            _give_all(root, user, left)
        except TreeTooLarge as error:
            raise AgentStartFailed(
                f"{path} could not be given to the user {user.uid} of this app: {error}; run"
                f" `chown -hR {user.uid}:{user.gid} {path}`, or clear it out"
            ) from error
        os.fchown(root, user.uid, user.gid)
    if left:
        log.warning(
            "%d things in %s stay root's, so the agent cannot change them, the first: %s",
            len(left),
            path,
            left[0],
        )


def disown(path: Path) -> None:
    """Note that others than its user will write in a folder of ours; `give_tree` then does its work again."""
    with contextlib.suppress(OSError), open_folder(path) as root:  # one that is missing is told elsewhere
        info = os.fstat(root)
        if info.st_uid != os.geteuid() and info.st_gid != os.getegid():
            os.fchown(root, -1, os.getegid())


@contextlib.contextmanager
def keeping_owner(path: Path, *, ours: bool) -> Iterator[None]:
    """For a block in which root puts files into a workspace: they become its owner's, as the rest is.

    In a folder of the operator's (not `ours`), what was root's before stays root's.
    """
    with open_folder(path) as root:
        owner = os.fstat(root).st_uid
        group = owner if ours else os.fstat(root).st_gid
    if os.geteuid() != 0 or owner == 0:
        yield
        return
    user = User(owner, group)
    if ours:
        disown(path)
        try:
            yield
        finally:
            give_tree(path, user)
        return
    before = {found.path for found in _list_of_root(path)}
    try:
        yield
    finally:
        for found in _list_of_root(path):
            if found.path not in before:
                _give(found, user)


def _list_of_root(path: Path) -> Iterator[Found]:
    with open_folder(path) as root:
        yield from (found for found in _walk(root, []) if found.info.st_uid == 0)


def _give_all(root: int, user: User, left: list[str]) -> None:
    """Files with several names only if all of their names are here: another one may be anybody's."""
    names: dict[tuple[int, int], int] = {}
    several: dict[tuple[int, int], int] = {}
    for found in _walk(root, left):
        if _is_of(found.info, user):
            continue
        if found.is_folder or found.info.st_nlink == 1:
            _give(found, user)
            continue
        key = (found.info.st_dev, found.info.st_ino)
        names[key], several[key] = names.get(key, 0) + 1, found.info.st_nlink
    if not names:
        return
    for found in _walk(root, []):
        key = (found.info.st_dev, found.info.st_ino)
        if key in names and not _is_of(found.info, user):
            if names[key] == several[key]:
                _give(found, user)
            else:
                left.append(found.path)


def _walk(root: int, left: list[str]) -> Iterator[Found]:
    return walk_tree(root, LIMITS, lambda path, _why: left.append(path), any_links=True)


def _give(found: Found, user: User) -> None:
    """By a descriptor: what took the name since is not what was looked at."""
    try:
        fd = os.open(found.name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=found.parent)
    except FileNotFoundError:
        return
    try:
        info = os.fstat(fd)
        if (info.st_dev, info.st_ino) == (found.info.st_dev, found.info.st_ino):
            os.chown(f"/proc/self/fd/{fd}", user.uid, user.gid)
    finally:
        os.close(fd)


def _is_of(info: os.stat_result, user: User) -> bool:
    return (info.st_uid, info.st_gid) == (user.uid, user.gid)


def choose_user(ownership: Ownership | None, launch: Launch, shared: Sequence[Path]) -> RunsAs:
    """What `Ownership.choose_now` says of a session's agent; without one, it runs as the server."""
    if ownership is None:
        return RunsAs(writable=tuple(shared))
    return ownership.choose_now(launch.app, launch.home, launch.cwd, launch.agent.sandbox, shared)
