"""The part of the hostile agent that makes system calls which escapes are made of.

Standard library only, as `hostile.py`.
"""

import ctypes
import mmap
import os
import platform
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.conformance.bombs import CLONE_NEWUSER, call, done

NUMBERS: Final = {
    "x86_64": {"clone": 56, "keyctl": 250, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312}
    | {"bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "init_module": 175, "add_key": 248},
    "aarch64": {"clone": 220, "keyctl": 219, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272}
    | {"bpf": 280, "perf_event_open": 241, "userfaultfd": 282, "init_module": 105, "add_key": 217},
}
CLONE3, PIDFD_GETFD, IO_URING_SETUP, OPEN_TREE, FSOPEN = 435, 438, 425, 428, 430
PTRACE_SEIZE, NETLINK_GENERIC = 0x4206, 16
CLONE_NEWTIME, CLONE_NEWNET = 0x80, 0x40000000
OPEN_TREE_CLONE, AT_FDCWD = 1, -100
MAP_CREATE, SYSLOG_SIZE = 0, 10
AF_PACKET, AF_ALG, AF_VSOCK = 17, 38, 40
GETPID_OF_I386: Final = bytes([0xB8, 20, 0, 0, 0, 0xCD, 0x80, 0xC3])


def system_call(number: int, *arguments: Any) -> int:
    whole = (ctypes.c_long(value) if isinstance(value, int) else value for value in arguments)
    return call("syscall", ctypes.c_long(number), *whole)


def number_of(name: str) -> int:
    return NUMBERS[platform.machine()][name]


class Calls:
    """Each method is one attempt; what it returns is the loot. `client` is the other end of the pipes."""

    client: Any

    def make_a_user_namespace(self) -> str:
        return "made" if done(lambda: call("unshare", CLONE_NEWUSER)) else ""

    def clone_into_a_namespace(self) -> str:
        return self._born(system_call(number_of("clone"), CLONE_NEWUSER | signal.SIGCHLD, 0, 0, 0, 0))

    def clone3_into_a_namespace(self) -> str:
        wanted = (ctypes.c_uint64 * 11)(CLONE_NEWUSER, 0, 0, 0, signal.SIGCHLD)
        return self._born(system_call(CLONE3, wanted, ctypes.sizeof(wanted)))

    def namespace_in_a_terminal(self) -> str:
        """In a command that the server starts for it."""
        name = self.client.request("terminal/create", command="unshare -U echo made")["terminalId"]
        try:
            self.client.request("terminal/wait_for_exit", terminalId=name)
            said = str(self.client.request("terminal/output", terminalId=name)["output"])
        finally:
            self.client.request("terminal/release", terminalId=name)
        return "made" if said.strip() == "made" else ""

    def trace_a_child(self) -> str:
        with _Child() as pid:
            call("ptrace", PTRACE_SEIZE, pid, 0, 0)
        return "traced"

    def descriptor_of_a_child(self) -> str:
        with _Child() as pid:
            return f"descriptor {system_call(PIDFD_GETFD, os.pidfd_open(pid), 0, 0)}"

    def memory_of_a_child(self) -> str:
        secret, out = ctypes.create_string_buffer(b"secret"), ctypes.create_string_buffer(6)
        here = (ctypes.c_uint64 * 2)(ctypes.addressof(out), 6)
        there = (ctypes.c_uint64 * 2)(ctypes.addressof(secret), 6)
        with _Child() as pid:
            system_call(number_of("process_vm_readv"), pid, here, 1, there, 1, 0)
        return out.raw.decode()

    def kernel_keys(self) -> str:
        return f"key {system_call(number_of('keyctl'), 0, -3, 1)}"

    def ring_of_calls(self) -> str:
        return f"ring {system_call(IO_URING_SETUP, 1, ctypes.create_string_buffer(120))}"

    def talk_to_the_kernel(self) -> str:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC):
            return "opened"

    def calls_of_another_machine(self) -> str:
        """32-bit calls have numbers of their own; a filter that forgets them is none."""
        if platform.machine() != "x86_64":
            return ""
        code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        code.write(GETPID_OF_I386)
        function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
        return "called" if done(function) else ""

    def make_a_time_namespace(self) -> str:
        return "made" if done(lambda: call("unshare", CLONE_NEWUSER | CLONE_NEWTIME)) else ""

    def make_a_network_namespace(self) -> str:
        return "made" if done(lambda: call("unshare", CLONE_NEWUSER | CLONE_NEWNET)) else ""

    def write_the_memory_of_a_child(self) -> str:
        mine, theirs = ctypes.create_string_buffer(b"of us"), ctypes.create_string_buffer(b"of it")
        here = (ctypes.c_uint64 * 2)(ctypes.addressof(mine), 5)
        there = (ctypes.c_uint64 * 2)(ctypes.addressof(theirs), 5)
        with _Child() as pid:
            return f"{system_call(number_of('process_vm_writev'), pid, here, 1, there, 1, 0)} bytes"

    def compare_processes(self) -> str:
        """Which tells where the kernel keeps things."""
        own = os.getpid()
        return f"order {system_call(number_of('kcmp'), own, own, 0, 0, 0)}"

    def change_its_root(self) -> str:
        return "changed" if done(lambda: call("chroot", os.fsencode(os.environ["HOME"]))) else ""

    def enter_a_namespace(self) -> str:
        def work() -> None:
            call("setns", os.open("/proc/self/ns/uts", os.O_RDONLY), 0)

        return "entered" if done(work) else ""

    def mount_by_the_new_calls(self) -> str:
        return f"context {system_call(FSOPEN, b'tmpfs', 0)}"

    def copy_a_mount(self) -> str:
        return f"tree {system_call(OPEN_TREE, AT_FDCWD, b'/', OPEN_TREE_CLONE)}"

    def load_a_program_into_the_kernel(self) -> str:
        """A map of one entry: type, sizes of key and value, entries, flags."""
        wanted = (ctypes.c_uint32 * 32)(2, 4, 4, 1, 0)
        return f"map {system_call(number_of('bpf'), MAP_CREATE, wanted, ctypes.sizeof(wanted))}"

    def count_events_of_the_machine(self) -> str:
        wanted = (ctypes.c_uint32 * 32)(1, 128)  # the processor's clock, of this process alone
        return f"counter {system_call(number_of('perf_event_open'), wanted, 0, -1, -1, 0)}"

    def handle_faults_of_memory(self) -> str:
        return f"descriptor {system_call(number_of('userfaultfd'), 0)}"

    def load_a_module(self) -> str:
        """An empty one, which the kernel refuses to whoever may load modules at all."""
        return self._may(lambda: system_call(number_of("init_module"), 0, 0, b""))

    def take_a_swap_away(self) -> str:
        return self._may(lambda: call("swapoff", b"/nonexistent"))

    def name_the_machine(self) -> str:
        name = socket.gethostname().encode()
        call("sethostname", name, len(name))
        return "named"

    def steer_the_clock(self) -> str:
        """It changes nothing, and is refused by a filter all the same."""
        return f"state {call('adjtimex', ctypes.create_string_buffer(512))}"

    def read_the_kernels_log(self) -> str:
        return f"{call('klogctl', SYSLOG_SIZE, None, 0)} bytes"

    def keep_a_key(self) -> str:
        number = system_call(number_of("add_key"), b"user", b"probe", b"x", 1, -3)
        return f"key {number}"

    def make_a_character_device(self) -> str:
        """One that stands for nothing, which every user may make."""
        path = Path(os.environ["HOME"]) / "nothing"
        path.unlink(missing_ok=True)
        os.mknod(path, 0o20600, os.makedev(0, 0))
        path.unlink()
        return "made"

    def listen_to_all_packets(self) -> str:
        return self._opened(AF_PACKET, socket.SOCK_RAW, 0)

    def make_packets_by_hand(self) -> str:
        return self._opened(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)

    def talk_to_the_machine_below(self) -> str:
        return self._opened(AF_VSOCK, socket.SOCK_STREAM, 0)

    def use_the_kernels_ciphers(self) -> str:
        return self._opened(AF_ALG, socket.SOCK_SEQPACKET, 0)

    def _opened(self, family: int, kind: int, protocol: int) -> str:
        os.close(call("socket", family, kind, protocol))
        return "opened"

    def _may(self, work: Callable[[], object]) -> str:
        """Whether it is refused for another reason than its rights."""
        try:
            work()
        except PermissionError:
            raise
        except OSError as error:
            return f"allowed: {error.strerror}"
        return "done"

    def _born(self, pid: int) -> str:
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
        return "born"


class _Child:
    """A process that waits to be attacked."""

    def __enter__(self) -> int:
        self._pid = os.fork()
        if self._pid == 0:
            time.sleep(60)
            os._exit(0)
        return self._pid

    def __exit__(self, *_: object) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
