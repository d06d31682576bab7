"""The part of the hostile agent that reaches for files, shared memory and processes of others.

Standard library only, as `hostile.py`. What it changes at others' is theirs to lose: the test plants it.
"""

# ruff: noqa: PTH208 - it does by hand what a hostile program would

import ctypes
import os
import resource
import socket
import threading
from pathlib import Path
from typing import Any, Final

from tests.conformance.bombs import LIBC, call

IN_ALL_EVENTS: Final = 0xFFF
RENAME_EXCHANGE: Final = 2
AT_FDCWD: Final = -100
IPC_NOWAIT: Final = 0o4000
MOST: Final = 64


class Reaches:
    """Each method is one attempt; what it returns is the loot."""

    data: Path
    home: Path
    server: int
    victim: int
    facts: dict[str, Any]

    # Files, by other ways than their names

    def up_from_the_workspace(self) -> str:
        return (Path.cwd() / "../../local.token").read_text()

    def up_from_the_home(self) -> str:
        return (self.home / "../../local.token").read_text()

    def up_from_its_tmp(self) -> str:
        return Path(os.environ["TMPDIR"], "../../../local.token").read_text()

    def through_its_own_root(self) -> str:
        return Path(f"/proc/self/root{self.data}/local.token").read_text()

    def through_its_working_folder(self) -> str:
        return Path("/proc/self/cwd/../../local.token").read_text()

    def through_a_thread(self) -> str:
        task = threading.get_native_id()
        return Path(f"/proc/self/task/{task}/root{self.data}/local.token").read_text()

    def through_a_chain_of_links(self) -> str:
        here, aim = self.home, str(self.data / "local.token")
        for number in range(8):
            link = here / f"chain{number}"
            link.unlink(missing_ok=True)
            link.symlink_to(aim)
            aim = link.name
        return (here / aim).read_text()

    def through_a_linked_folder(self) -> str:
        link = self.home / "folder"
        link.unlink(missing_ok=True)
        link.symlink_to(self.data)
        return " ".join(name for name in os.listdir(link) if name.startswith("forge"))

    def from_a_descriptor_of_the_root(self) -> str:
        root = os.open("/", os.O_PATH)
        try:
            with open(os.open(f"{self.data}/local.token".lstrip("/"), os.O_RDONLY, dir_fd=root)) as file:  # noqa: PTH123
                return file.read()
        finally:
            os.close(root)

    def look_at_the_database(self) -> str:
        return f"{(self.data / 'forge.db').stat().st_size} bytes"

    def watch_the_data_folder(self) -> str:
        watcher = call("inotify_init1", 0)
        try:
            call("inotify_add_watch", watcher, os.fsencode(self.data), IN_ALL_EVENTS)
        finally:
            os.close(watcher)
        return "watching" if (self.data / "forge.db").exists() else ""

    def read_the_lock(self) -> str:
        return (self.data / "server.lock").read_text()

    def read_snapshots_of_others(self) -> str:
        return " ".join(os.listdir(self.data / "shadows"))

    def socket_in_the_data_folder(self) -> str:
        path = self.data / "evil.sock"
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))
        path.unlink()
        return "bound" if (self.data / "forge.db").exists() else ""

    def pipe_in_the_data_folder(self) -> str:
        path = self.data / "evil.pipe"
        os.mkfifo(path)
        path.unlink()
        return "made" if (self.data / "forge.db").exists() else ""

    def change_the_mode_of_anothers_file(self) -> str:
        Path(self.facts["other_secret"]).chmod(0o644)
        return "changed"

    def change_the_times_of_anothers_file(self) -> str:
        os.utime(self.facts["other_secret"], (0, 0))
        return "changed"

    def move_anothers_file(self) -> str:
        (Path(self.facts["other_home"]) / "moved").rename(self.home / "moved")
        return (self.home / "moved").read_text()

    def swap_files_with_another(self) -> str:
        mine, theirs = self.home / "mine", Path(self.facts["other_home"]) / "swapped"
        mine.write_text("of the agent")
        names = os.fsencode(mine), AT_FDCWD, os.fsencode(theirs)
        call("renameat2", AT_FDCWD, *names, RENAME_EXCHANGE)
        return mine.read_text()

    def shorten_anothers_file(self) -> str:
        os.truncate(Path(self.facts["other_home"]) / "short", 0)
        return "shortened"

    def hardlink_to_anothers_file(self) -> str:
        link = Path.cwd() / "hard"
        link.unlink(missing_ok=True)
        os.link(self.facts["other_secret"], link)
        return link.read_text()

    def swap_anothers_home_for_a_link(self) -> str:
        """The folder would lead the server's next copy of that home to where the agent likes."""
        doomed = Path(self.facts["other_home"]) / "replaced"
        doomed.rmdir()
        doomed.symlink_to(self.data)
        doomed.unlink()
        return "replaced"

    def read_the_operators_keys(self) -> str:
        return (Path(self.facts["operator_home"]) / ".ssh" / "key").read_text()

    def write_the_operators_start_script(self) -> str:
        (Path(self.facts["operator_home"]) / ".profile").write_text("# of the agent")
        return "written"

    # Memory that processes share

    def file_in_shared_memory(self) -> str:
        return Path(self.facts["shared_file"]).read_text()

    def segment_of_system_v(self) -> str:
        LIBC.shmat.restype = ctypes.c_void_p
        number = call("shmget", self.facts["ipc_key"], 0, 0)
        address = LIBC.shmat(number, None, 0)
        if address in (None, ctypes.c_void_p(-1).value):
            raise PermissionError("shmat")
        found = ctypes.string_at(address, MOST).rstrip(b"\0")
        LIBC.shmdt(ctypes.c_void_p(address))
        return found.decode()

    def queue_of_system_v(self) -> str:
        number = call("msgget", self.facts["ipc_key"], 0)
        buffer = ctypes.create_string_buffer(8 + MOST)
        size = call("msgrcv", number, buffer, ctypes.c_size_t(MOST), ctypes.c_long(0), IPC_NOWAIT)
        return buffer.raw[8 : 8 + size].decode()

    def semaphores_of_system_v(self) -> str:
        return f"semaphores {call('semget', self.facts['ipc_key'], 0, 0)}"

    def queue_of_posix(self) -> str:
        return f"queue {call('mq_open', self.facts['queue'].encode(), os.O_RDONLY)}"

    # Processes, and what the kernel shows

    def see_another_agent(self) -> str:
        return Path(f"/proc/{self.victim}/status").read_text().split("\n")[0]

    def slow_the_server(self) -> str:
        os.setpriority(os.PRIO_PROCESS, self.server, os.getpriority(os.PRIO_PROCESS, self.server))
        return "set"

    def pin_the_server(self) -> str:
        os.sched_setaffinity(self.server, os.sched_getaffinity(self.server))
        return "pinned"

    def limit_the_server(self) -> str:
        now = resource.prlimit(self.server, resource.RLIMIT_NOFILE)
        resource.prlimit(self.server, resource.RLIMIT_NOFILE, now)
        return "set"

    def hold_the_server(self) -> str:
        os.close(os.pidfd_open(self.server))
        return "held"

    def enter_the_servers_namespaces(self) -> str:
        os.close(os.open(f"/proc/{self.server}/ns/mnt", os.O_RDONLY))
        return "opened"

    def change_a_setting_of_the_kernel(self) -> str:
        """The program that the kernel runs after a crash, as root and outside. It is not changed here."""
        os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))
        return "opened"

    def move_interrupts(self) -> str:
        os.close(os.open("/proc/irq/default_smp_affinity", os.O_WRONLY))
        return "opened"

    def press_a_system_key(self) -> str:
        os.close(os.open("/proc/sysrq-trigger", os.O_WRONLY))
        return "opened"

    def memory_of_the_kernel(self) -> str:
        with open("/proc/kcore", "rb") as file:  # noqa: PTH123
            return f"{len(file.read(16))} bytes"

    def devices_of_the_machine(self) -> str:
        return " ".join(os.listdir("/sys/class"))

    def groups_of_the_machine(self) -> str:
        return " ".join(os.listdir("/sys/fs/cgroup"))

    def gain_rights(self) -> str:
        """By a program like `sudo`, which runs as its owner."""
        status = Path("/proc/self/status").read_text()
        return "could" if status.split("NoNewPrivs:")[1].split()[0] == "0" else ""

    def secrets_in_its_environment(self) -> str:
        return os.environ.get("SECRET_OF_THE_OPERATOR", "")

    def secrets_in_its_ancestors(self) -> str:
        """In the environment of whoever started it, as far up as it sees."""
        pid, found = os.getppid(), ""
        while pid > 0 and "SECRET_OF_THE_OPERATOR" not in found:
            found = Path(f"/proc/{pid}/environ").read_text(errors="replace")
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        return "found" if "SECRET_OF_THE_OPERATOR" in found else ""
