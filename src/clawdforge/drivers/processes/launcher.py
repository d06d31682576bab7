"""The small program between the server and an agent: it prepares the process, then runs the agent in it.

It runs as a file and imports the standard library only:

    python -I -S launcher.py exec|keep STATUS_FD NOFILE NPROC FSIZE JOIN_FDS WALL… -- COMMAND…

It is a program, not a `preexec_fn`, because the server has threads and Python code between fork and exec may
deadlock there. Inside bwrap, a program for this interpreter with these options is run in this process.

`exec` (inside bwrap) sets limits and becomes the agent. `keep` (without bwrap) stays as its parent and the
reaper of its orphans: when the agent ends or the server dies, it kills everything that is left.

JOIN_FDS are open files, as `5,6` or `-`: a process that writes `0` to them joins the agent's group. Only the
agent joins, before its first line runs; its keeper must not share the agent's limits (`cgroups.py`).

Each WALL is put up in the agent's process, last of all; if one cannot be, the agent does not run:

- `landlock=FS:SCOPE` and `path=RIGHTS:PATH`: the rights over files that are taken away, those that are given
  back below a path, and what is bounded to the agent's own processes (`landlock.py`);
- `same=FD:PATH`: what is mounted at a path must be what the descriptor stands for. With `--bind`, bwrap turns
  the name of a descriptor into a path again, and mounts what is there a moment later;
- `user=UID:GID`: the user that it becomes, without any group or capability of root;
- `powers=MASK`: the capabilities of root that it keeps;
- `filter=HEX`: which system calls it may make (`seccomp.py`);
- `listen=FD:PORT`: listen on that port of its own loopback, and send the socket to the server through FD, so
  that the server answers there (`egress.py`).

It writes `S` to the status pipe before it runs the agent, followed by an errno if that failed. If the write
itself fails, the server died before the death signal was set, and nothing is run.
"""

# ruff: noqa: SLF001 -- of `posix`, `_exit` is no secret

import _signal as signal  # type: ignore[import-not-found] # `signal` itself takes 3 ms for its enums
import _socket
import _stat as stat
import posix as os  # `os` itself takes 2 ms
import resource
import sys
import time
from _ctypes import FUNCFLAG_CDECL, FUNCFLAG_USE_ERRNO, CFuncPtr, Structure, byref, dlopen, dlsym, get_errno
from _ctypes import _SimpleCData as Value  # `ctypes` itself takes 3 ms

PR_SET_PDEATHSIG, PR_SET_DUMPABLE = 1, 4
PR_SET_SECCOMP, PR_CAPBSET_DROP = 22, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 36, 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
SECCOMP_MODE_FILTER = 2
CAPABILITY_VERSION, CAPABILITIES = 0x20080522, 64
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
LANDLOCK_RULE_PATH_BENEATH = 1
RIGHTS_OVER_A_FILE = 0xC007  # to run, write, read, shorten and control it; the others are over folders
BACKLOG = 128
ESTALE = 116
OOM_SCORE = "500"  # when memory runs out, the kernel kills an agent before the server
GIVE_UP_SECONDS = 10.0
ENOUGH_OF_STAT = 512
OPTIONS = ["-I", "-S"]  # of the interpreter that runs this


class suppress:  # noqa: N801 -- that of contextlib, whose import takes 2 ms
    def __init__(self, *kinds: type[BaseException]) -> None:
        self._kinds = kinds

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, self._kinds)


class Short(Value):  # type: ignore[type-arg] # only `ctypes` lets it be named
    _type_ = "H"


class Long(Value):  # type: ignore[type-arg]
    _type_ = "l"


class Text(Value):  # type: ignore[type-arg]
    _type_ = "z"


class Program(Structure):
    """A filter of system calls, as the kernel takes it."""

    _fields_ = (("length", Short), ("steps", Text))


class Call(CFuncPtr):
    """A function of the C library. What it says is a plain int, and -1 when it has failed."""

    _flags_ = FUNCFLAG_CDECL | FUNCFLAG_USE_ERRNO


LIBC = dlopen(None, 0)  # type: ignore[arg-type] # what this program has open itself
PRCTL, CAPSET, SYSCALL = (Call(dlsym(LIBC, name)) for name in ("prctl", "capset", "syscall"))


def prctl(option: int, value: int, more: object = 0) -> None:
    _check(PRCTL(option, value, more, 0, 0))


def system_call(number: int, *arguments: int | bytes | None) -> int:
    whole = (Long(value) if isinstance(value, int) else value for value in arguments)
    return _check(SYSCALL(Long(number), *whole))


def _check(result: int) -> int:
    if result < 0:
        raise OSError(get_errno(), os.strerror(get_errno()))
    return result


def parent_of(pid: int) -> int | None:
    """None when the process is gone. Where the kernel lists no children, this is asked of every process."""
    try:
        file = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return int(os.read(file, ENOUGH_OF_STAT).rpartition(b")")[2].split(None, 2)[1])
    except (OSError, IndexError):
        return None
    finally:
        os.close(file)


def children(pid: int) -> list[int]:
    try:
        found: list[int] = []
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", "rb") as file:  # noqa: PTH123 -- pathlib takes 8 ms
                found += map(int, file.read().split())
    except FileNotFoundError:  # gone, or a kernel without that file
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        return [other for other in pids if parent_of(other) == pid]
    except OSError:  # it ended while we looked
        return []
    return found


def set_limits(nofile: int, nproc: int, fsize: int) -> None:
    """Zero leaves a limit unchanged; none is raised above the hard limit."""
    kinds = (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for kind, value in zip(kinds, (nofile, nproc, fsize), strict=True):
        hard = resource.getrlimit(kind)[1]
        if value:
            top = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (top, top))
    with (
        suppress(OSError),
        open("/proc/self/oom_score_adj", "w", encoding="ascii") as file,  # noqa: PTH123 -- as above
    ):
        file.write(OOM_SCORE)


def close_others(kept: set[int]) -> None:
    """Close what was open for the mounts: from a folder's descriptor an agent could walk to its parent."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            with suppress(OSError):  # the one that was used to list them
                os.close(int(name))


def join_groups(join_fds: list[int]) -> None:
    """Join the groups that limit the agent. This takes one grace period of the kernel, 0 to 20 ms."""
    for fd in join_fds:
        os.write(fd, b"0")
        os.close(fd)


def put_up_walls(walls: list[str]) -> None:
    """Everything that bounds this process from within, and all that it starts. There is no way back."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    ruleset = -1
    for wall in walls:
        kind, _, value = wall.partition("=")
        first, _, rest = value.partition(":")
        if kind == "same":
            compare_folder(int(first), rest)
        elif kind == "listen":
            listen_for_server(int(first), int(rest))
        elif kind == "user":
            become_user(int(first), int(rest))
        elif kind == "powers":
            keep_powers(int(value))
        elif kind == "landlock":
            numbers = b"".join(n.to_bytes(8, sys.byteorder) for n in (int(first), 0, int(rest)))
            ruleset = system_call(LANDLOCK_CREATE_RULESET, numbers, len(numbers), 0)
        elif kind == "path":
            give_rights(ruleset, int(first), rest)
        elif kind == "filter":
            steps = bytes.fromhex(value)
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, byref(Program(len(steps) // 8, steps)))
    if ruleset >= 0:
        system_call(LANDLOCK_RESTRICT_SELF, ruleset, 0)
        os.close(ruleset)


def compare_folder(fd: int, path: str) -> None:
    """The agent has not run yet, so nothing has come of it if something else was mounted."""
    held, mounted = os.fstat(fd), os.stat(path)
    if (held.st_dev, held.st_ino) != (mounted.st_dev, mounted.st_ino):
        raise OSError(ESTALE, "another folder took its place while it was mounted; try again", path)


def keep_powers(mask: int) -> None:
    """Give up all capabilities but those of the mask, for good. Only root has any."""
    bound_powers(mask)
    hold_powers(mask)


def bound_powers(mask: int) -> None:
    """No program that is run from here on can have more than these."""
    for number in range(CAPABILITIES):
        if not mask >> number & 1:
            with suppress(OSError):  # there are fewer
                prctl(PR_CAPBSET_DROP, number)
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)


def hold_powers(mask: int) -> None:
    halves = [mask & 0xFFFFFFFF] * 2 + [0] + [mask >> 32] * 2 + [0]  # effective, permitted, inheritable
    header, sets = (
        b"".join(n.to_bytes(4, sys.byteorder) for n in row) for row in ((CAPABILITY_VERSION, 0), halves)
    )
    _check(CAPSET(header, sets))


def become_user(uid: int, gid: int) -> None:
    """Be that user for good. Its pipes become its own, or it could not open /dev/stderr."""
    for fd in (0, 1, 2):
        if stat.S_ISFIFO(os.fstat(fd).st_mode):
            os.fchown(fd, uid, gid)
    bound_powers(0)  # first: afterwards nothing may be changed any more
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    hold_powers(0)


def give_rights(ruleset: int, rights: int, path: str) -> None:
    """Rights over everything below a path. What does not exist needs none."""
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(os.fstat(fd).st_mode):
        rights &= RIGHTS_OVER_A_FILE
    rule = rights.to_bytes(8, sys.byteorder) + fd.to_bytes(4, sys.byteorder)
    system_call(LANDLOCK_ADD_RULE, ruleset, LANDLOCK_RULE_PATH_BENEATH, rule, 0)
    os.close(fd)


def listen_for_server(channel_fd: int, port: int) -> None:
    """The network of this process is its own; what listens here is answered by the server outside."""
    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", port))
    listener.listen(BACKLOG)
    channel = _socket.socket(fileno=channel_fd)
    number = listener.fileno().to_bytes(4, sys.byteorder)
    channel.sendmsg([b"L"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, number)])
    channel.close()
    listener.close()


def is_for_us(command: list[str]) -> bool:
    """Whether it is a file that this very interpreter would be started with, and can read."""
    *interpreter, path = command[:4]
    is_ours = interpreter == [sys.executable, *OPTIONS] and path.endswith(".py")
    if not (is_ours and os.access(path, os.R_OK) and os.access(sys.executable, os.X_OK)):
        return False
    return stat.S_ISREG(os.stat(path).st_mode)


def run_here(path: str, arguments: list[str], status: int) -> None:
    """Run it as the interpreter does, which would first take 10 ms for its own start."""
    prctl(PR_SET_DUMPABLE, 1)  # as it is after `exec`: a change of user took its own /proc from it
    os.write(status, b"S")  # what is wrong with the program is its own failure
    os.close(status)
    sys.argv = [path, *arguments]
    main = sys.modules["__main__"] = type(sys)("__main__")
    main.__file__ = path
    with open(path, "rb") as file:  # noqa: PTH123 -- as above
        code = compile(file.read(), path, "exec")
    exec(code, main.__dict__)  # noqa: S102 -- running it is the purpose


def become(command: list[str], status: int) -> None:
    """Run the command in place of this process. Never returns."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)  # Python ignores the first two, and exec would pass that on
    try:
        os.write(status, b"S")
        os.execv(command[0], command)
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
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.001)


def bound(limits: tuple[int, int, int], join_fds: list[int], walls: list[str]) -> None:
    """Make this process one that the agent may be. Ends it if that fails."""
    join_groups(join_fds)
    set_limits(*limits)
    try:
        put_up_walls(walls)
        for fd in fds_of(walls):
            with suppress(OSError):  # one was closed when it had been used
                os.close(fd)
    except OSError as error:
        os.write(2, f"a wall around the agent could not be put up: {error}\n".encode())
        os._exit(126)


def run_keeper(
    command: list[str], status: int, limits: tuple[int, int, int], join_fds: list[int], walls: list[str]
) -> int:
    """Be the agent's parent until it ends. Returns its exit code, or 128 + n for signal n, as bwrap does."""

    def stop(_number: int, _frame: object) -> None:
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
        bound(limits, join_fds, walls)
        become(command, status)
    for fd in (status, *join_fds, *fds_of(walls)):
        os.close(fd)
    nothing = os.open("/dev/null", os.O_RDWR)
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
    mode, status, nofile, nproc, fsize, groups, *rest = sys.argv[1:]
    walls, command = rest[: rest.index("--")], rest[rest.index("--") + 1 :]
    fd, limits = int(status), (int(nofile), int(nproc), int(fsize))
    join_fds = [] if groups == "-" else [int(fd) for fd in groups.split(",")]
    os.set_inheritable(fd, False)
    close_others({0, 1, 2, fd, *join_fds, *fds_of(walls)})
    if mode == "keep":
        os._exit(run_keeper(command, fd, limits, join_fds, walls))
    bound(limits, join_fds, walls)
    if not is_for_us(command):
        become(command, fd)
    run_here(command[3], command[4:], fd)


def fds_of(walls: list[str]) -> set[int]:
    """The descriptors that walls name. None of them may be left to the agent."""
    found: set[int] = set()
    for wall in walls:
        kind, _, value = wall.partition("=")
        rest = value.partition(":")[2]
        if kind in ("listen", "same"):
            found.add(int(value.partition(":")[0]))
        elif kind == "path" and rest.startswith("/proc/self/fd/"):
            found.add(int(rest.rpartition("/")[2]))
    return found


if __name__ == "__main__":
    main()
