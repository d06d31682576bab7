"""The filter of system calls as the kernel would run it, for each kind of machine."""

import errno
import os
import signal
import struct
import subprocess
import sys

import pytest

from clawdforge.drivers.processes import launcher
from clawdforge.drivers.processes.seccomp import NEWEST, NoFilter, build_filter


def decide(program: bytes, machine: int, number: int, *arguments: int) -> int:
    """What the kernel does with a filter: a small interpreter of the steps that ours has."""
    data = struct.pack("=IIQ6Q", number, machine, 0, *arguments, *(6 - len(arguments)) * (0,))
    steps = list(struct.iter_unpack("=HBBI", program))
    at, held = 0, 0
    while True:
        code, yes, no, value = steps[at]
        at += 1
        if code == 0x06:
            return int(value)
        if code == 0x20:
            held = struct.unpack_from("=I", data, value)[0]
        elif code == 0x54:
            held &= value
        else:
            taken = {0x15: held == value, 0x25: held > value, 0x45: bool(held & value)}[code]
            at += yes if taken else no


ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x80000000
ABSENT = 0x00050000 | errno.ENOSYS
X86, ARM, I386 = 0xC000003E, 0xC00000B7, 0x40000003


@pytest.mark.parametrize(
    ("name", "word", "numbers"),
    [
        (
            "x86_64",
            X86,
            {"mount": 165, "ptrace": 101, "clone": 56, "openat": 257, "socket": 41, "mknodat": 259},
        ),
        (
            "aarch64",
            ARM,
            {"mount": 40, "ptrace": 117, "clone": 220, "openat": 56, "socket": 198, "mknodat": 33},
        ),
    ],
)
def test_the_filter_of_each_machine(name: str, word: int, numbers: dict[str, int]) -> None:
    program = build_filter(machine=name)
    assert decide(program, word, numbers["mount"]) == REFUSE
    assert decide(program, word, numbers["ptrace"]) == REFUSE
    assert decide(program, word, numbers["openat"]) == ALLOW
    assert decide(program, word, numbers["clone"], 0x00010F00) == ALLOW  # a thread
    assert decide(program, word, numbers["clone"], 0x20000000 | 17) == REFUSE
    assert decide(program, word, 435) == ABSENT
    assert decide(program, word, numbers["socket"], 2, 1, 6) == ALLOW
    assert decide(program, word, numbers["socket"], 16, 3, 0) == ALLOW
    assert decide(program, word, numbers["socket"], 16, 3, 12) == 0x00050000 | errno.EPROTONOSUPPORT
    assert decide(program, word, numbers["socket"], 17, 3, 0) == 0x00050000 | errno.EAFNOSUPPORT
    assert decide(program, word, numbers["mknodat"], 0, 0, 0o010600) == ALLOW  # a FIFO
    assert decide(program, word, numbers["mknodat"], 0, 0, 0o060600) == REFUSE
    assert decide(program, word, NEWEST + 1) == ABSENT
    assert decide(program, word, 0x40000000 | numbers["mount"]) == ABSENT  # the x32 form of the same call
    assert decide(program, I386, numbers["openat"]) == KILL
    with pytest.raises(NoFilter, match="riscv64"):
        build_filter(machine="riscv64")


def test_a_process_of_another_machine_is_killed() -> None:
    other = "aarch64" if os.uname().machine == "x86_64" else "x86_64"
    status = os.open(os.devnull, os.O_WRONLY)
    words = [
        str(status),
        "0",
        "0",
        "0",
        "-",
        f"filter={build_filter(machine=other).hex()}",
        "--",
        "/bin/true",
    ]
    done = subprocess.run(
        [sys.executable, "-I", "-S", launcher.__file__, "exec", *words], pass_fds=[status], check=False
    )
    os.close(status)
    assert done.returncode == -signal.SIGSYS
