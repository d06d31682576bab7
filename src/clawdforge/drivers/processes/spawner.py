"""Starts agents and their terminals: contained, with their folders held open, each in a group of its own."""

import asyncio
import contextlib
import itertools
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from clawdforge.drivers.processes.cgroups import Group, Groups
from clawdforge.drivers.processes.containment import NAMESPACES, Active, Containment, Limits
from clawdforge.drivers.processes.environment import TEMPORARY
from clawdforge.drivers.processes.folder_identity import NotTheFolder, check_folder
from clawdforge.drivers.processes.held_paths import HeldPaths, PathChanged, PathMissing
from clawdforge.drivers.processes.mounts import AgentFolders, SystemFiles
from clawdforge.drivers.processes.network import Channel, NetworkPlan, Networks
from clawdforge.drivers.processes.pipes import read_all, run_to_end, status_pipe
from clawdforge.drivers.processes.policy import NO_POLICY, Policy
from clawdforge.drivers.processes.process import AgentProcess
from clawdforge.drivers.processes.recent_runtimes import Found, RecentRuntimes
from clawdforge.drivers.processes.runtimes import Needs
from clawdforge.drivers.processes.survivors import TAG, Tag, end_survivors, folder_id
from clawdforge.drivers.processes.users import AS_SERVER, RunsAs, User, name_user
from clawdforge.wire.errors import AgentNotInstalled, AgentStartFailed, WorkspaceChanged

START_SECONDS = 20.0


class Started(NamedTuple):
    """A process that nobody watches yet, its launcher's status pipe, and a channel if it has a way out."""

    child: subprocess.Popen[bytes]
    tag: Tag
    group: Group
    status: int
    channel: Channel | None

    def give_up(self) -> None:
        """End it with what it has started.

        A sandbox that is killed before it could tie its own child to itself leaves it.
        """
        with self.child, self.channel or contextlib.nullcontext(), contextlib.suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGKILL)
        os.close(self.status)
        self.group.remove()


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
        networks: Networks | None = None,
    ) -> None:
        self.containment = containment
        self._networks = networks or Networks()
        self._groups = groups
        self._data_dir = data_dir
        self._real_data_dir = data_dir.resolve()
        self._runtimes = RecentRuntimes(self._real_data_dir)
        self._boot_id = boot_id
        self._folder = folder_id(data_dir)
        self._limits = limits or Limits()
        self._living: set[int] = set()
        self._written: frozenset[str] = frozenset()  # folders that agents have written; see `note_written`
        self._numbers = itertools.count(1)
        self._starter = ThreadPoolExecutor(1, thread_name_prefix="starting agents")

    def note_written(self, folders: Iterable[str]) -> None:
        """Folders of the operator's that agents write: where they lead is not the operator's word."""
        self._written |= frozenset(folders)

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        home: Path,
        env: Mapping[str, str],
        tag: str,
        app: str | None = None,
        needs: Needs = Needs(),  # noqa: B008 -- frozen and empty
        readable: Sequence[Path] = (),
        writable: Sequence[Path] = (),
        private_tmp: bool = False,
        sandbox: str | None = None,
        policy: Policy = NO_POLICY,
        beside: AgentProcess | None = None,
        identity: str | None = None,
        runs_as: RunsAs = AS_SERVER,
    ) -> AgentProcess:
        """Start a program. `tag` is the session's id; with `beside`, it counts towards that agent's limits.

        With `app`, it counts towards that app's part of the processors.

        It sees the programs of the system, and of others only what the operator's `needs` name: an agent
        chooses the arguments of its terminals itself.

        `identity` is what was recorded of `cwd`; WorkspaceChanged when another folder is there. `runs_as` is
        what `Ownership` said about this agent.

        A thread of ours starts it, since the event loop would stand still for milliseconds. The thread lives
        as long as we and all agents do: each of them is killed when the thread ends that started it.
        """
        real_home, workspace = self._find_real(home), self._find_real(cwd)
        active = self.containment.choose(sandbox)
        network = self._networks.choose(policy, active)
        written = self._written
        if not workspace.is_relative_to(self._real_data_dir):
            self.note_written(map(str, (workspace, *writable)))

        def start() -> Started:
            runtime, unsafe = self._find_runtime(needs, env, (real_home, workspace), sandbox, written)
            folders = AgentFolders(
                data_dir=self._data_dir,
                home=real_home,
                workspace=workspace,
                readable=tuple(self._find_real(path) for path in readable),
                writable=(*writable, *runs_as.writable),
                copies=runs_as.copies,
                etc=tuple(path for path, _ in policy.etc) if active in NAMESPACES else (),
                runtime=runtime,
                unsafe=unsafe,
                tmp=None if private_tmp else _find_tmp(real_home),
            )
            return self._start(
                argv, folders, env, tag, app, sandbox, policy, network, beside, identity, runs_as.user
            )

        begun: list[tuple[AgentProcess, Started]] = []
        with contextlib.ExitStack() as ends:
            try:
                await run_to_end(self._begin(start, active, begun, ends))
                async with asyncio.timeout(START_SECONDS):  # Python 3.11's wait_for may lose a cancel
                    said = await read_all(begun[0][1].status)
            except TimeoutError:
                said = b""
            except BaseException:
                for process, _ in begun:
                    await process.close(eof_grace=0.0, term_grace=0.0)
                raise
            ((process, started),) = begun
            await process.check_start(said, runs_as.user)
            if started.channel is not None:
                await self._open_way_out(process, started.channel, network, policy.agent, tag)
        return process

    async def _begin(
        self,
        start: Callable[[], Started],
        active: Active,
        begun: list[tuple[AgentProcess, Started]],
        ends: contextlib.ExitStack,
    ) -> None:
        started = await asyncio.get_running_loop().run_in_executor(self._starter, start)
        process = self._watch(started, active)
        begun.append((process, started))
        ends.callback(os.close, started.status)
        if started.channel is not None:
            ends.enter_context(started.channel)
        await process.connect()

    def _watch(self, started: Started, active: Active) -> AgentProcess:
        child, tag, group, *_ = started
        try:
            return AgentProcess(child, active, tag, group, self._living, self._starter)
        except OSError as error:  # no descriptors are left
            started.give_up()
            self._living.discard(child.pid)
            raise AgentStartFailed(f"the agent could not be started: {error}") from error

    async def _open_way_out(
        self, process: AgentProcess, channel: Channel, plan: NetworkPlan, agent: str, session: str
    ) -> None:
        try:
            process.egress = await self._networks.open_egress(channel, plan, agent, session)
        except BaseException:
            await process.close(eof_grace=0.0, term_grace=0.0)
            raise

    def _start(
        self,
        argv: Sequence[str],
        folders: AgentFolders,
        env: Mapping[str, str],
        session: str,
        app: str | None,
        sandbox: str | None,
        policy: Policy,
        network: NetworkPlan,
        beside: AgentProcess | None,
        identity: str | None,
        user: User | None,
    ) -> Started:
        command = [find_program(argv[0], env), *argv[1:]]
        tag = Tag(self._folder, self._boot_id, session, str(next(self._numbers)))
        group = self._make_group(tag, app) if beside is None else beside.group.share()
        try:
            with (
                HeldPaths(folders.list_held()) as held,
                SystemFiles(name_user(user, folders.home), own=policy.etc) as copied,
                group.open_join_fds() as join_fds,
                status_pipe() as (status, other_end),
                contextlib.ExitStack() as stack,
            ):
                check_folder(held.fd_of(folders.workspace), folders.workspace, identity, self._real_data_dir)
                _check_owner(held, folders, user)
                channel = stack.enter_context(Channel()) if network.network == "proxy" else None
                wrapped = self.containment.wrap(
                    command,
                    folders=folders,
                    sources={**held.sources, **copied.sources},
                    status_fd=other_end,
                    limits=self._limits,
                    join_fds=join_fds,
                    sandbox=sandbox,
                    allows=policy.allows,
                    own_network=network.network != "open",
                    listen=None if channel is None else channel.listen,
                    user=user,
                )
                fds = () if channel is None else (channel.fd,)
                given = {**network.set_variables(env), TAG: str(tag)}
                child = subprocess.Popen(
                    group.put_first(wrapped, given),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    bufsize=0,
                    cwd=held.sources[folders.workspace],
                    env=given,
                    pass_fds=(other_end, *join_fds, *held.fds, *copied.fds, *fds),
                    start_new_session=True,
                )
                self._living.add(child.pid)
                stack.pop_all()  # the channel is for the caller now
                return Started(child, tag, group, status, channel)
        except PathChanged as error:
            group.remove()
            raise WorkspaceChanged(
                f"{error} was replaced by a link since the session was made; put the folder back, or start a"
                " new session there"
            ) from error
        except NotTheFolder as error:
            group.remove()
            raise WorkspaceChanged(str(error)) from error
        except PathMissing as error:
            group.remove()
            if str(error) == str(folders.workspace):
                raise WorkspaceChanged(
                    f"{error} does not exist, or is not mounted; put the folder back, or start a new session"
                ) from error
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

    def _find_runtime(
        self,
        needs: Needs,
        env: Mapping[str, str],
        closed: Sequence[Path],
        sandbox: str | None,
        written: frozenset[str],
    ) -> Found:
        if self.containment.choose(sandbox) == "tree":  # it sees everything anyway
            return (), ()
        return self._runtimes.find(needs, env, closed, written)

    def _make_group(self, tag: Tag, app: str | None) -> Group:
        """Fails where no group can be made: limits that worked at the start are never left out silently."""
        try:
            return Group() if self._groups is None else self._groups.make(tag.spawn, app=app)
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


def find_program(name: str, env: Mapping[str, str], install: str = "") -> str:
    """The program's path in that environment; `install` is the command that would bring it.

    Raises AgentNotInstalled, or AgentStartFailed with the reason.
    """
    found = shutil.which(name, path=env.get("PATH"))
    if found is not None:
        return os.path.abspath(found)  # noqa: PTH100 -- resolve() would follow links that multi-call programs need
    if os.sep in name and Path(name).exists():
        raise AgentStartFailed(
            f"{name} is not an executable file; run `chmod +x {name}`, or correct the agent's command"
        )
    is_command = install and not install.startswith("install ")  # the others are words for a person
    how = f"install it with `{install}`" if is_command else install or "install it"
    raise AgentNotInstalled(f"{name} is not installed; {how}, or add its folder to the server's PATH")


def _check_owner(held: HeldPaths, folders: AgentFolders, user: User | None) -> None:
    """Whoever could swap a folder while its owner was looked up would choose whom the agent runs as."""
    for folder in (folders.workspace, folders.home):
        if user is not None and os.fstat(held.fd_of(folder)).st_uid != user.uid:
            raise NotTheFolder(f"{folder} does not belong to {user.uid}, as whom its agent runs; try again")


def _find_tmp(home: Path) -> Path | None:
    """A folder in the home, which an agent and its terminals share. Never a link: the agent made that."""
    folder = home / TEMPORARY
    return folder if folder.is_dir() and not folder.is_symlink() else None
