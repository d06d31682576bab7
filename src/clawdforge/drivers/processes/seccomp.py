"""Builds the filter that decides which system calls an agent may make, as a program for the kernel.

It refuses what no coding agent needs and what escapes are made of: mounts, namespaces, modules, tracing,
keys, raw sockets, set-uid files and the like. The kernel tells the agent "not permitted", or "there is no
such call" where programs know how to do without. What an agent may be allowed after all has a name here and
in its settings.

The filter is made by the server, without any library, and put in place by the launcher.
"""

import errno
import os
import struct
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

ALLOWANCES: Final = ("namespaces", "tracing")
"""What an agent's settings may allow it: sandboxes of its own, and debuggers."""

NEWEST: Final = 469
"""The newest call that was looked at, `file_setattr`. Later ones do not exist for agents."""

_LOAD, _JUMP_EQUAL, _JUMP_GREATER, _JUMP_SET, _AND, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x54, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER_AT, _MACHINE_AT, _ARGUMENTS_AT = 0, 4, 16

_NEW_NAMESPACES: Final = 0x7E020000  # CLONE_NEW*: mount, cgroup, uts, ipc, user, pid, net
_NEW_TIME: Final = 0x80  # CLONE_NEWTIME; in `clone` these bits are the signal at the end
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C  # type into a terminal
_FILE_TYPE, _CHARACTER_DEVICE, _BLOCK_DEVICE = 0xF000, 0x2000, 0x6000
_SET_ID: Final = 0o6000  # a program with these bits runs with the rights of its owner or group
_O_CREAT, _O_TMPFILE = 0x40, 0x400000
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_NETLINK_ROUTE, _NETLINK_KOBJECT_UEVENT = 0, 15  # addresses of this machine, which node asks for; devices


class NoFilter(Exception):
    """There is no filter for this kind of machine."""


@dataclass(frozen=True, slots=True)
class _Machine:
    """The kernel's word for a processor, and its numbers of the calls that are not the same everywhere."""

    word: int
    numbers: Mapping[str, int]


_SAME: Final = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "clone3": 435,
    "pidfd_getfd": 438,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "open_tree_attr": 467,
    "fchmodat2": 452,
}
_MACHINES: Final = {
    "x86_64": _Machine(
        0xC000003E,
        _SAME
        | {"mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "setns": 308, "unshare": 272}
        | {"clone": 56, "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312}
        | {"kexec_load": 246, "kexec_file_load": 320, "init_module": 175, "finit_module": 313}
        | {"delete_module": 176, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "add_key": 248}
        | {"request_key": 249, "keyctl": 250, "open_by_handle_at": 304, "swapon": 167, "swapoff": 168}
        | {"reboot": 169, "quotactl": 179, "acct": 163, "settimeofday": 164, "clock_settime": 227}
        | {"clock_adjtime": 305, "adjtimex": 159, "sethostname": 170, "setdomainname": 171, "syslog": 103}
        | {"vhangup": 153, "lookup_dcookie": 212, "nfsservctl": 180, "iopl": 172, "ioperm": 173}
        | {"uselib": 134, "_sysctl": 156, "create_module": 174, "query_module": 178, "mknod": 133}
        | {"mknodat": 259, "ioctl": 16, "socket": 41, "chmod": 90, "fchmod": 91, "fchmodat": 268}
        | {"open": 2, "openat": 257, "creat": 85, "prlimit64": 302, "setpriority": 141}
        | {"sched_setaffinity": 203, "sched_setscheduler": 144, "sched_setparam": 142}
        | {"sched_setattr": 314, "ioprio_set": 251, "migrate_pages": 256, "move_pages": 279}
        | {"shmget": 29, "shmat": 30, "shmctl": 31, "semget": 64, "semop": 65, "semctl": 66}
        | {"semtimedop": 220, "msgget": 68, "msgsnd": 69, "msgrcv": 70, "msgctl": 71, "mq_open": 240},
    ),
    "aarch64": _Machine(
        0xC00000B7,
        _SAME
        | {"mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51, "setns": 268, "unshare": 97}
        | {"clone": 220, "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272}
        | {"kexec_load": 104, "kexec_file_load": 294, "init_module": 105, "finit_module": 273}
        | {"delete_module": 106, "bpf": 280, "perf_event_open": 241, "userfaultfd": 282, "add_key": 217}
        | {"request_key": 218, "keyctl": 219, "open_by_handle_at": 265, "swapon": 224, "swapoff": 225}
        | {"reboot": 142, "quotactl": 60, "acct": 89, "settimeofday": 170, "clock_settime": 112}
        | {"clock_adjtime": 266, "adjtimex": 171, "sethostname": 161, "setdomainname": 162, "syslog": 116}
        | {"vhangup": 58, "lookup_dcookie": 18, "nfsservctl": 42, "mknodat": 33, "ioctl": 29}
        | {"socket": 198, "fchmod": 52, "fchmodat": 53, "openat": 56, "prlimit64": 261}
        | {"setpriority": 140, "sched_setaffinity": 122, "sched_setscheduler": 119}
        | {"sched_setparam": 118, "sched_setattr": 274, "ioprio_set": 30, "migrate_pages": 238}
        | {"move_pages": 239, "mq_open": 180, "msgget": 186, "msgctl": 187, "msgrcv": 188, "msgsnd": 189}
        | {"semget": 190, "semctl": 191, "semtimedop": 192, "semop": 193, "shmget": 194, "shmctl": 195}
        | {"shmat": 196},
    ),
}

_REFUSED: Final = (
    *("kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "create_module"),
    *("query_module", "bpf", "perf_event_open", "userfaultfd", "add_key", "request_key", "keyctl"),
    *("open_by_handle_at", "swapon", "swapoff", "reboot", "quotactl", "quotactl_fd", "acct", "syslog"),
    *("settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname"),
    *("vhangup", "lookup_dcookie", "nfsservctl", "iopl", "ioperm", "uselib", "_sysctl"),
)
_MOUNTS: Final = (
    *("mount", "umount2", "pivot_root", "chroot", "setns", "fsopen", "fsconfig", "fsmount", "fspick"),
    *("move_mount", "open_tree", "open_tree_attr", "mount_setattr"),
)
_TRACING: Final = ("ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd")
_ABSENT: Final = ("io_uring_setup", "io_uring_enter", "io_uring_register")
"""Programs that know these calls do without where a kernel does not have them."""

_SHARED_MEMORY: Final = (
    *("shmget", "shmat", "shmctl", "semget", "semop", "semctl", "semtimedop"),
    *("msgget", "msgsnd", "msgrcv", "msgctl", "mq_open"),
)
"""They have no paths, and every process of the same user may use them."""

_OF_OTHERS: Final = {
    "prlimit64": 0,
    "setpriority": 1,
    "sched_setaffinity": 0,
    "sched_setscheduler": 0,
    "sched_setparam": 0,
    "sched_setattr": 0,
    "ioprio_set": 1,
    "migrate_pages": 0,
    "move_pages": 0,
}
"""Calls that change another process of the same user, and which argument names it; 0 is the caller itself."""

_MODES: Final = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1}
_OPENING: Final = {"open": 1, "openat": 2}
"""The argument with the mode, or with the flags before it.

`openat2` has them in memory, where no filter sees. It stays, since programs that open files safely know no
other way, and does no harm: the file that it makes is empty, and whatever makes a file longer takes the bits
away, unless the process has CAP_FSETID, which no agent has.
"""

_Step = tuple[int, int, int, int]


def build_filter(
    allows: Sequence[str] = (), machine: str | None = None, *, sees_others: bool = False
) -> bytes:
    """The program for this kind of machine. Raises NoFilter.

    `sees_others` is for an agent without namespaces of its own: it may change no process but itself.
    """
    return _assemble(frozenset(allows), machine or os.uname().machine, sees_others=sees_others)


@lru_cache
def _assemble(allows: AbstractSet[str], name: str, *, sees_others: bool) -> bytes:
    known = _MACHINES.get(name)
    if known is None or struct.calcsize("P") != 8:
        raise NoFilter(f"there is no filter of system calls for {name}")
    numbers = known.numbers
    steps = [_load(_MACHINE_AT), *_unless_equal(known.word, _KILL), _load(_NUMBER_AT)]
    steps += [(_JUMP_GREATER, 0, 1, NEWEST), _fail(errno.ENOSYS)]
    for call in _REFUSED:
        steps += _refuse(numbers, call, errno.EPERM)
    for call in _ABSENT:
        steps += _refuse(numbers, call, errno.ENOSYS)
    if "tracing" not in allows:
        for call in _TRACING:
            steps += _refuse(numbers, call, errno.EPERM)
    if "namespaces" not in allows:
        for call in _MOUNTS:
            steps += _refuse(numbers, call, errno.EPERM)
        steps += _refuse(numbers, "clone3", errno.ENOSYS)  # its flags lie in memory, where no filter sees
        steps += _on(numbers, "clone", _refuse_flags(_NEW_NAMESPACES))
        steps += _on(numbers, "unshare", _refuse_flags(_NEW_NAMESPACES | _NEW_TIME))
    steps += _on(numbers, "ioctl", _refuse_values(1, (_TIOCSTI, _TIOCLINUX)))
    devices = (_CHARACTER_DEVICE, _BLOCK_DEVICE)
    steps += _on(numbers, "mknod", _refuse_values(1, devices, mask=_FILE_TYPE))
    steps += _on(numbers, "mknodat", _refuse_values(2, devices, mask=_FILE_TYPE))
    steps += _on(numbers, "socket", _check_socket())
    steps += _refuse_set_id(numbers)
    if sees_others:
        steps += _spare_others(numbers)
    steps.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _refuse_set_id(numbers: Mapping[str, int]) -> list[_Step]:
    modes = [_on(numbers, call, _refuse_bits(argument, _SET_ID)) for call, argument in _MODES.items()]
    opening = [_on(numbers, call, _check_opening(argument)) for call, argument in _OPENING.items()]
    return [step for steps in (*modes, *opening) for step in steps]


def _spare_others(numbers: Mapping[str, int]) -> list[_Step]:
    memory = [_refuse(numbers, call, errno.EPERM) for call in _SHARED_MEMORY]
    processes = [_on(numbers, call, _refuse_unless_zero(argument)) for call, argument in _OF_OTHERS.items()]
    return [step for steps in (*memory, *processes) for step in steps]


def _load(at: int) -> _Step:
    return (_LOAD, 0, 0, at)


def _load_argument(number: int) -> _Step:
    """Its lower half: what is looked at here has 32 bits, and both kinds of machine store those first."""
    return _load(_ARGUMENTS_AT + 8 * number)


def _fail(number: int) -> _Step:
    return (_RETURN, 0, 0, _ERRNO | number)


def _unless_equal(value: int, action: int) -> list[_Step]:
    return [(_JUMP_EQUAL, 1, 0, value), (_RETURN, 0, 0, action)]


def _if_equal(value: int, action: int) -> list[_Step]:
    return [(_JUMP_EQUAL, 0, 1, value), (_RETURN, 0, 0, action)]


def _refuse(numbers: Mapping[str, int], call: str, number: int) -> list[_Step]:
    """Nothing where the machine has no such call."""
    return _if_equal(numbers[call], _ERRNO | number) if call in numbers else []


def _on(numbers: Mapping[str, int], call: str, body: Sequence[_Step]) -> list[_Step]:
    """Steps for one call, which end with a decision."""
    return [(_JUMP_EQUAL, 0, len(body), numbers[call]), *body] if call in numbers else []


def _refuse_flags(flags: int) -> list[_Step]:
    """A call whose first argument has any of these bits."""
    return _refuse_bits(0, flags)


def _refuse_bits(argument: int, bits: int) -> list[_Step]:
    return [_load_argument(argument), (_JUMP_SET, 0, 1, bits), _fail(errno.EPERM), (_RETURN, 0, 0, _ALLOW)]


def _refuse_unless_zero(argument: int) -> list[_Step]:
    return [_load_argument(argument), *_if_equal(0, _ALLOW), _fail(errno.EPERM)]


def _check_opening(flags: int) -> list[_Step]:
    """The mode means something only where a file is made; else there may be anything in its place."""
    makes = [(_JUMP_SET, 1, 0, _O_CREAT | _O_TMPFILE), (_RETURN, 0, 0, _ALLOW)]
    return [_load_argument(flags), *makes, *_refuse_bits(flags + 1, _SET_ID)]


def _refuse_values(argument: int, values: Sequence[int], mask: int | None = None) -> list[_Step]:
    steps = [_load_argument(argument)] + ([] if mask is None else [(_AND, 0, 0, mask)])
    for value in values:
        steps += _if_equal(value, _ERRNO | errno.EPERM)
    return [*steps, (_RETURN, 0, 0, _ALLOW)]


def _check_socket() -> list[_Step]:
    """The families that programs use; of the kernel's own, only what tells addresses and devices."""
    steps = [_load_argument(0)]
    for family in (_AF_UNIX, _AF_INET, _AF_INET6):
        steps += _if_equal(family, _ALLOW)
    steps += _unless_equal(_AF_NETLINK, _ERRNO | errno.EAFNOSUPPORT)
    steps.append(_load_argument(2))
    for protocol in (_NETLINK_ROUTE, _NETLINK_KOBJECT_UEVENT):
        steps += _if_equal(protocol, _ALLOW)
    return [*steps, _fail(errno.EPROTONOSUPPORT)]
