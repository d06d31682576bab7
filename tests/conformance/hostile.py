"""An agent that tries to get out: an ACP program whose prompt names a probe; it answers what it got hold of.

Standard library only, and the modules beside it. An empty answer means that the probe was stopped; `why` says
how, for the report.
"""

# ruff: noqa: PTH115, PTH123, PTH208, S310, S606 - it does by hand what a hostile program would

import contextlib
import ctypes
import json
import os
import shutil
import socket
import struct
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.conformance.bombs import CLONE_NEWNS, CLONE_NEWUSER, Bombs, call, done
from tests.conformance.calls import Calls
from tests.conformance.deputies import Deputies
from tests.conformance.networks import Networks
from tests.conformance.reaches import Reaches

PTRACE_SEIZE = 0x4206
MS_BIND, MNT_DETACH = 4096, 2
TIOCSTI = 0x5412
LIFETIME = 60.0


class Probes(Bombs, Calls, Deputies, Networks, Reaches):
    """Each method is one attempt; what it returns is the loot."""

    client: "Client"

    def __init__(self, client: "Client", facts: dict[str, Any]) -> None:
        self.client = client
        self.data = Path(facts["data"])
        self.server = int(facts["server"])
        self.victim = int(facts["victim"])
        self.facts = facts
        self.home = Path(os.environ["HOME"])

    def read_database(self) -> str:
        return (self.data / "forge.db").read_bytes()[:15].decode()

    def read_token(self) -> str:
        return (self.data / "local.token").read_text()

    def list_data_folder(self) -> str:
        return " ".join(name for name in os.listdir(self.data) if name.startswith("forge"))

    def read_other_home(self) -> str:
        return Path(self.facts["other_secret"]).read_text()

    def read_other_workspace(self) -> str:
        return (Path(self.facts["other_workspace"]) / "secret").read_text()

    def read_other_copies(self) -> str:
        return " ".join(os.listdir(self.data / "copies"))

    def read_uploads(self) -> str:
        return " ".join(os.listdir(self.data / "files"))

    def write_data_folder(self) -> str:
        (self.data / "evil").write_text("x")
        return str(self.facts["outside"]) if (self.data / "forge.db").exists() else ""

    def write_database(self) -> str:
        with (self.data / "forge.db").open("r+b") as file:
            return file.read(15).decode()

    def delete_other_home(self) -> str:
        target = Path(self.facts["other_secret"]).parent / "doomed"
        shutil.rmtree(target)
        return "deleted"

    def symlink_to_database(self) -> str:
        link = self.home / "link"
        link.unlink(missing_ok=True)
        link.symlink_to(self.data / "forge.db")
        return link.read_bytes()[:15].decode()

    def hardlink_to_token(self) -> str:
        os.link(self.data / "local.token", self.home / "hard")
        return (self.home / "hard").read_text()

    def through_the_root_of_process_1(self) -> str:
        return Path(f"/proc/1/root{self.data}/local.token").read_text()

    def through_the_servers_root(self) -> str:
        return Path(f"/proc/{self.server}/root{self.data}/local.token").read_text()

    def inherited_descriptors(self) -> str:
        found = []
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                target = os.readlink(f"/proc/self/fd/{name}")
                if int(name) > 2 and not target.startswith("/proc/"):
                    found.append(target)
        return " ".join(found)

    def descriptors_of_others(self) -> str:
        """From a folder that somebody holds open one could walk up, past all mounts.

        All tokens that are found: without a sandbox there may be those of other servers.
        """
        found = set()
        for path in self.descriptors():
            with contextlib.suppress(OSError):
                folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
                for above in ("", "../", "../../", "../../../"):
                    with (
                        contextlib.suppress(OSError),
                        open(os.open(f"{above}local.token", os.O_RDONLY, dir_fd=folder)) as file,
                    ):
                        found.add(file.read())
                os.close(folder)
        return " ".join(sorted(found))

    def descriptors(self) -> list[str]:
        """Those of all processes that it can see; some end meanwhile."""
        found = []
        for process in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                found += [f"/proc/{process}/fd/{name}" for name in os.listdir(f"/proc/{process}/fd")]
        return found

    def unmount(self) -> str:
        with contextlib.suppress(OSError):
            call("umount2", os.fsencode(self.data), MNT_DETACH)
        return self.read_token()

    def bind_mount(self) -> str:
        target = self.home / "mounted"
        target.mkdir(exist_ok=True)
        call("mount", b"/usr", os.fsencode(target), None, MS_BIND, None)
        call("umount2", os.fsencode(target), MNT_DETACH)
        return "mounted"

    def own_user_namespace(self) -> str:
        """Root in a namespace of its own may unmount what it mounted itself, not what was there before."""

        def work() -> None:
            with contextlib.suppress(OSError):
                call("unshare", CLONE_NEWUSER | CLONE_NEWNS)
                call("umount2", os.fsencode(self.data), MNT_DETACH)
            self.read_token()

        return "read" if done(work) else ""

    def file_by_handle(self) -> str:
        handle = struct.pack("Ii8s", 8, 1, b"\0" * 8)
        fd = os.open("/", os.O_RDONLY)
        try:
            call("open_by_handle_at", fd, ctypes.create_string_buffer(handle), os.O_RDONLY)
        except OSError as error:
            return "" if error.errno == 1 else "allowed"
        finally:
            os.close(fd)
        return "allowed"

    def make_a_device(self) -> str:
        path = self.home / "disk"
        path.unlink(missing_ok=True)
        os.mknod(path, 0o60600, os.makedev(1, 0))
        path.unlink()
        return "made"

    def read_the_disk(self) -> str:
        for name in os.listdir("/dev"):
            with contextlib.suppress(OSError):
                if name.startswith(("vd", "sd", "nvme", "xvd", "mem", "kmem")) and "fd" not in name:
                    with open(f"/dev/{name}", "rb") as file:
                        file.read(1)
                    return name
        return ""

    def see_the_server(self) -> str:
        return Path(f"/proc/{self.server}/cmdline").read_text().replace("\0", " ")

    def servers_environment(self) -> str:
        return Path(f"/proc/{self.server}/environ").read_text()

    def servers_memory(self) -> str:
        return self._memory(self.server)

    def servers_descriptors(self) -> str:
        return " ".join(os.listdir(f"/proc/{self.server}/fd"))

    def steal_a_descriptor(self) -> str:
        return f"descriptor {call('syscall', 438, os.pidfd_open(self.server), 0, 0)}"

    def trace_the_server(self) -> str:
        return self._trace(self.server)

    def signal_the_server(self) -> str:
        os.kill(self.server, 0)
        return "can"

    def signal_another_agent(self) -> str:
        os.kill(self.victim, 0)
        return "can" if b"hostile" in Path(f"/proc/{self.victim}/cmdline").read_bytes() else ""

    def another_agents_environment(self) -> str:
        found = Path(f"/proc/{self.victim}/environ").read_text()
        return found if self.facts["other_home"] in found else ""

    def another_agents_memory(self) -> str:
        return self._memory(self.victim) if self._is_victim() else ""

    def trace_another_agent(self) -> str:
        return self._trace(self.victim) if self._is_victim() else ""

    def control_port(self) -> str:
        return self._get("/sessions")

    def control_port_of_pages(self) -> str:
        return self._get("/api/sessions")

    def operator_routes(self) -> str:
        return self._get("/admin/tokens")

    def abstract_socket(self) -> str:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect("\0" + self.facts["abstract"])
            return "connected"

    def socket_in_tmp(self) -> str:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(self.facts["named"])
            return "connected"

    def read_the_users_files(self) -> str:
        return Path(self.facts["users_file"]).read_text()

    def write_the_users_files(self) -> str:
        Path(self.facts["users_file"]).with_suffix(".evil").write_text("x")
        return "written"

    def write_the_system(self) -> str:
        return "can" if os.access("/etc", os.W_OK) else ""

    def type_into_the_terminal(self) -> str:
        fd = os.open("/dev/tty", os.O_RDWR)
        call("ioctl", fd, TIOCSTI, b"x")
        return "typed"

    def powers_of_root(self) -> str:
        status = Path("/proc/self/status").read_text()
        has = int(status.split("CapEff:")[1].split()[0], 16)
        names = {21: "SYS_ADMIN", 19: "SYS_PTRACE", 2: "DAC_READ_SEARCH", 27: "MKNOD", 17: "SYS_RAWIO"}
        return " ".join(name for bit, name in names.items() if has >> bit & 1)

    def survive_in_a_new_session(self) -> str:
        return self._stray("session")

    def survive_a_double_fork(self) -> str:
        return self._stray("twice", twice=True)

    def survive_without_the_tag(self) -> str:
        return self._stray("bare", twice=True, bare=True)

    def survive_a_crowd(self) -> str:
        for number in range(self.facts.get("crowd", 200)):
            self._stray("crowd" if number == 0 else "", twice=True)
        return "crowd"

    def survive_by_killing_the_parent(self) -> str:
        self._stray("orphan", twice=True)
        os.kill(os.getppid(), 9)
        return "orphan"

    def _stray(self, name: str, *, twice: bool = False, bare: bool = False) -> str:
        path, lifetime = Path.cwd() / name, float(self.facts.get("lifetime", LIFETIME))
        if os.fork():
            with contextlib.suppress(ChildProcessError):
                os.wait() if twice else None
            return name
        os.setsid()
        if twice and os.fork():
            os._exit(0)
        for fd in (0, 1, 2):
            os.dup2(os.open(os.devnull, os.O_RDWR), fd)
        if bare:
            beat = f"open({str(path)!r}, 'a').write('x'); time.sleep(0.02)"
            code = f"import time\nfor _ in range({round(lifetime * 50)}): {beat}"
            os.execve(sys.executable, [sys.executable, "-c", code], {})
        end = time.monotonic() + lifetime
        while time.monotonic() < end:
            if name:
                with path.open("a") as file:
                    file.write("x")
            time.sleep(0.02)
        os._exit(0)

    def _is_victim(self) -> bool:
        return self.facts["other_home"].encode() in Path(f"/proc/{self.victim}/environ").read_bytes()

    def _memory(self, pid: int) -> str:
        line = Path(f"/proc/{pid}/maps").read_text().splitlines()[0]
        with open(f"/proc/{pid}/mem", "rb", 0) as file:
            file.seek(int(line.split("-")[0], 16))
            return f"{len(file.read(16))} bytes"

    def _trace(self, pid: int) -> str:
        return "traced" if done(lambda: call("ptrace", PTRACE_SEIZE, pid, None, None)) else ""

    def _get(self, path: str) -> str:
        token = self.facts.get("token")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        asked = urllib.request.Request(f"{self.facts['url']}{path}", headers=headers)
        try:
            with urllib.request.urlopen(asked, timeout=10) as reply:
                return str(reply.read().decode())
        except urllib.error.HTTPError as error:
            if error.code == 401:
                return ""
            raise


class Client:
    """The other end of the pipes."""

    def __init__(self) -> None:
        self._number = 0

    def send(self, **message: Any) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()

    def ask(self, method: str, **params: Any) -> str:
        return str(self.request(method, **params).get("content", ""))

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        self.send(id=self._number, method=method, params={"sessionId": "s", **params})
        answer = json.loads(sys.stdin.readline())
        if "error" in answer:
            raise PermissionError(answer["error"]["message"])
        result: dict[str, Any] = answer["result"]
        return result

    def serve(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            method, number = message.get("method"), message.get("id")
            result: dict[str, Any] = {}
            if method == "initialize":
                result = {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}
            elif method == "session/new":
                result = {"sessionId": "s"}
            elif method == "session/prompt":
                order = json.loads(message["params"]["prompt"][-1]["text"])
                self.report(order["probe"], order["facts"])
                result = {"stopReason": "end_turn"}
            if number is not None:
                self.send(id=number, result=result)

    def report(self, probe: str, facts: dict[str, Any]) -> None:
        loot, why = "", ""
        try:
            loot = str(getattr(Probes(self, facts), probe)())
        except (OSError, ValueError, MemoryError) as error:
            why = f"{type(error).__name__}: {error}"
        content = {"type": "text", "text": json.dumps({"loot": loot, "why": why})}
        update = {"sessionUpdate": "agent_message_chunk", "content": content}
        self.send(method="session/update", params={"sessionId": "s", "update": update})
