"""Starts agents and their terminals: contained, with their folders held open, each in a group of its own."""

import asyncio
import itertools
import os
import shutil
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from clawdforge.drivers.processes.cgroups import Group, Groups
from clawdforge.drivers.processes.containment import Active, AgentFolders, Containment, Limits
from clawdforge.drivers.processes.held_paths import HeldPaths, PathChanged, PathMissing
from clawdforge.drivers.processes.pipes import read_all, run_to_end, status_pipe
from clawdforge.drivers.processes.process import AgentProcess
from clawdforge.drivers.processes.survivors import TAG, Tag, end_survivors, folder_id
from clawdforge.wire.errors import AgentNotInstalled, AgentStartFailed, WorkspaceChanged

START_SECONDS = 20.0


class Spawner:
    """Starts agents in one data folder."""

    def __init__(
        self,
        containment: Containment,
        data_dir: Path,
        boot_id: str,
        *,
        limits: Limits | None = None,
        groups: Groups | None = None,
    ) -> None:
        self.containment = containment
        self._groups = groups
        self._data_dir = data_dir
        self._real_data_dir = data_dir.resolve()
        self._boot_id = boot_id
        self._folder = folder_id(data_dir)
        self._limits = limits or Limits()
        self._living: set[int] = set()
        self._numbers = itertools.count(1)

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        home: Path,
        env: Mapping[str, str],
        tag: str,
        readable: Sequence[Path] = (),
        writable: Sequence[Path] = (),
        private_tmp: bool = False,
        sandbox: str | None = None,
        beside: AgentProcess | None = None,
    ) -> AgentProcess:
        """Start a program. `tag` is the session's id; with `beside`, it counts towards that agent's limits.

        Call it from the main thread only: a death signal is sent when the thread ends, not the process.
        """
        folders = AgentFolders(
            data_dir=self._data_dir,
            home=self._find_real(home),
            workspace=self._find_real(cwd),
            readable=tuple(readable),
            writable=tuple(writable),
            private_tmp=private_tmp,
        )
        process, status = self._start(argv, folders, env, tag, sandbox, beside)
        try:
            await run_to_end(process.connect())
            async with asyncio.timeout(START_SECONDS):  # Python 3.11's wait_for may lose a cancel
                said = await read_all(status)
        except TimeoutError:
            said = b""
        except BaseException:
            await process.close(eof_grace=0.0, term_grace=0.0)
            raise
        finally:
            os.close(status)
        await process.check_start(said)
        return process

    def _start(
        self,
        argv: Sequence[str],
        folders: AgentFolders,
        env: Mapping[str, str],
        session: str,
        sandbox: str | None,
        beside: AgentProcess | None,
    ) -> tuple[AgentProcess, int]:
        """The process and its launcher's status pipe. Blocks for the 2 ms that a vfork and exec take."""
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("agents are spawned from the main thread only")
        active = self.containment.choose(sandbox)
        command = [find_program(argv[0], env), *argv[1:]]
        tag = Tag(self._folder, self._boot_id, session, str(next(self._numbers)))
        group = self._make_group(tag) if beside is None else beside.group.share()
        try:
            with (
                HeldPaths((folders.workspace, folders.home, *folders.writable)) as held,
                group.open_join_fds() as join_fds,
                status_pipe() as (status, other_end),
            ):
                wrapped = self.containment.wrap(
                    command,
                    folders=folders,
                    sources=held.sources,
                    status_fd=other_end,
                    limits=self._limits,
                    join_fds=join_fds,
                    sandbox=sandbox,
                )
                child = subprocess.Popen(
                    wrapped,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    bufsize=0,
                    cwd=held.sources[folders.workspace],
                    env={**env, TAG: str(tag)},
                    pass_fds=(other_end, *join_fds, *held.fds),
                    start_new_session=True,
                )
                return _watch(child, active, tag, group, self._living), status
        except PathChanged as error:
            group.remove()
            raise WorkspaceChanged(
                f"{error} was replaced by a link since the session was made; put the folder back, or start a"
                " new session there"
            ) from error
        except PathMissing as error:
            group.remove()
            raise AgentStartFailed(
                f"{error} does not exist; make it again, or start a new session"
            ) from error
        except (OSError, ValueError) as error:  # the second for a NUL in an argument or a variable
            group.remove()
            raise AgentStartFailed(f"the agent could not be started: {error}") from error

    def _find_real(self, path: Path) -> Path:
        """Links on the way to the data folder are the operator's own; nowhere else may there be any."""
        if path.is_relative_to(self._data_dir):
            return self._real_data_dir / path.relative_to(self._data_dir)
        return path

    def _make_group(self, tag: Tag) -> Group:
        """Fails where no group can be made: limits that worked at the start are never left out silently."""
        try:
            return Group() if self._groups is None else self._groups.make(tag.spawn)
        except OSError as error:
            raise AgentStartFailed(
                f"the agent's control group could not be made: {error}; restart the server"
            ) from error

    async def end_orphans(self) -> int:
        """At the server's start: end the agents that a dead server of this data folder left behind."""
        count = await end_survivors(lambda tag: tag.folder == self._folder and tag.boot != self._boot_id)
        if self._groups is not None:
            await asyncio.to_thread(self._groups.end_leftovers)
        return count


def find_program(name: str, env: Mapping[str, str]) -> str:
    """The program's path in that environment.

    Raises AgentNotInstalled, or AgentStartFailed with the reason.
    """
    found = shutil.which(name, path=env.get("PATH"))
    if found is not None:
        return os.path.abspath(found)  # noqa: PTH100 -- resolve() would follow links that multi-call programs need
    if os.sep in name and Path(name).exists():
        raise AgentStartFailed(
            f"{name} is not an executable file; run `chmod +x {name}`, or correct the agent's command"
        )
    raise AgentNotInstalled(f"{name} is not installed; install it, or add its folder to the server's PATH")


def _watch(
    child: subprocess.Popen[bytes], active: Active, tag: Tag, group: Group, living: set[int]
) -> AgentProcess:
    """Kill a child that cannot be watched because no descriptors are left."""
    try:
        return AgentProcess(child, active, tag, group, living)
    except OSError:
        with child:
            child.kill()
        raise
