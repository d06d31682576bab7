"""The small program between the server and an agent: it prepares the process, then runs the agent in it.

It runs as a file, `python -I -S launcher.py exec|keep STATUS_FD NOFILE NPROC FSIZE JOIN_FDS -- COMMAND…`, and
imports the standard library only. It is a program, not a `preexec_fn`, because the server has threads and
Python code between fork and exec may deadlock there. It adds about 12 ms to an agent's start of 15 to 4000
ms.

`exec` (inside bwrap) sets limits and becomes the agent. `keep` (without bwrap) stays as the agent's
parent and the reaper of its orphans: when the agent ends or the server dies, it kills everything that is
left.

JOIN_FDS are open files, as `5,6` or `-`: a process that writes `0` to them joins the agent's group
(`cgroups.py`). Only the agent joins, before its first line runs; its keeper must not share the agent's
limits.

It writes `S` to the status pipe before it runs the agent, followed by an errno if that failed. If the write
itself fails, the server died before the death signal was set, and nothing is run.
"""

import contextlib
import ctypes
import os
import resource
import signal
import sys
import time
from types import FrameType

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
OOM_SCORE = "500"  # when memory runs out, the kernel kills an agent before the server
GIVE_UP_SECONDS = 10.0


def prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def parent_of(pid: int) -> int | None:
    """None when the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 -- pathlib would double the start time
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError):
        return None


def children(pid: int) -> list[int]:
    try:
        found: list[int] = []
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 -- as above
            with open(f"/proc/{pid}/task/{task}/children", "rb") as file:  # noqa: PTH123 -- as above
                found += map(int, file.read().split())
    except FileNotFoundError:  # gone, or a kernel without that file
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 -- as above
        return [other for other in pids if parent_of(other) == pid]
    except OSError:  # it ended while we looked
        return []
    return found


def set_limits(nofile: int, nproc: int, fsize: int) -> None:
    """Zero leaves a limit unchanged; none is raised above the hard limit."""
    wanted = (
        (resource.RLIMIT_NOFILE, nofile),
        (resource.RLIMIT_NPROC, nproc),
        (resource.RLIMIT_FSIZE, fsize),
    )
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for kind, value in wanted:
        hard = resource.getrlimit(kind)[1]
        if value:
            top = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (top, top))
    with (
        contextlib.suppress(OSError),
        open("/proc/self/oom_score_adj", "w", encoding="ascii") as file,  # noqa: PTH123 -- as above
    ):
        file.write(OOM_SCORE)


def close_others(kept: set[int]) -> None:
    """Close what was open for the mounts: from a folder's descriptor an agent could walk to its parent."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 -- pathlib is slow to import
        if int(name) not in kept:
            with contextlib.suppress(OSError):  # the one that was used to list them
                os.close(int(name))


def join_groups(join_fds: list[int]) -> None:
    """Join the groups that limit the agent. This takes one grace period of the kernel, 0 to 20 ms."""
    for fd in join_fds:
        os.write(fd, b"0")
        os.close(fd)


def become(command: list[str], status: int) -> None:
    """Run the command in place of this process. Never returns."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)  # Python ignores the first two, and exec would pass that on
    try:
        os.write(status, b"S")
        os.execv(command[0], command)  # noqa: S606 -- running it is the purpose
    except BrokenPipeError:
        pass
    except OSError as error:
        os.write(status, str(error.errno).encode())
    os._exit(127)


def kill_children() -> None:
    """Kill children until none are left. The orphans of a killed child become ours and are killed next."""
    deadline = time.monotonic() + GIVE_UP_SECONDS
    while time.monotonic() < deadline:
        for pid in children(os.getpid()):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.001)


def run_keeper(command: list[str], status: int, limits: tuple[int, int, int], join_fds: list[int]) -> int:
    """Be the agent's parent until it ends. Returns its exit code, or 128 + n for signal n, as bwrap does."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        kill_children()
        os._exit(128 + signal.SIGTERM)

    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_NO_NEW_PRIVS, 1)  # a set-uid program could not be ended by us
    signal.signal(signal.SIGTERM, stop)
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    me = os.getpid()
    agent = os.fork()
    if agent == 0:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != me:
            os._exit(127)
        join_groups(join_fds)
        set_limits(*limits)
        become(command, status)
    for fd in (status, *join_fds):
        os.close(fd)
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):  # the agent's pipes must end with the agent
        os.dup2(nothing, fd)
    while True:
        pid, code = os.waitpid(-1, 0)
        if pid == agent:
            break
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    kill_children()
    code = os.waitstatus_to_exitcode(code)
    return code if code >= 0 else 128 - code


def main() -> None:
    mode, status, nofile, nproc, fsize, groups, _, *command = sys.argv[1:]
    fd, limits = int(status), (int(nofile), int(nproc), int(fsize))
    join_fds = [] if groups == "-" else [int(fd) for fd in groups.split(",")]
    os.set_inheritable(fd, False)
    close_others({0, 1, 2, fd, *join_fds})
    if mode == "keep":
        os._exit(run_keeper(command, fd, limits, join_fds))
    join_groups(join_fds)
    set_limits(*limits)
    become(command, fd)


if __name__ == "__main__":
    main()
