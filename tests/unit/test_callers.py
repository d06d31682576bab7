"""Who is at the other end of a connection: asked of the kernel, with real sockets and processes."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from clawdforge.core.ports import Standing
from clawdforge.drivers.processes.callers import ProcCallers
from clawdforge.drivers.processes.cgroups import find_cgroups
from clawdforge.drivers.processes.group_trees import Ceilings
from clawdforge.drivers.processes.sockets import find_holders, find_socket
from clawdforge.drivers.processes.survivors import TAG, Tag, folder_id
from tests.needs import needs

HOLD = "import sys; sys.stdin.read()"


ORDINARY = """
import ctypes, encodings.idna, os, socket, sys
from pathlib import Path
from clawdforge.drivers.processes.callers import ProcCallers

def become_ordinary():
    os.setgid(65534), os.setuid(65534)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # as a program is that was started by an ordinary user

def connect_from_child(prepare):
    if os.fork() == 0:
        prepare()
        end = socket.create_connection(listener.getsockname())
        end.recv(1)  # until the server's end is closed
        os._exit(0)
    return listener.accept()[0]

def hide():
    become_ordinary()
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)

listener = socket.create_server(("127.0.0.1", 0))
ends = {
    "neighbour": connect_from_child(become_ordinary),
    "root": connect_from_child(lambda: None),
    "hidden": connect_from_child(hide),
}
if os.fork() == 0:
    become_ordinary()
    ends["agent"] = connect_from_child(lambda: None)
    callers = ProcCallers(Path("/"))
    for name, end in ends.items():
        print(name, callers.look_at_neighbour(end.getpeername(), end.getsockname()).value, flush=True)
    os._exit(0)
os.wait()
"""


@contextmanager
def connected(
    host: str, family: socket.AddressFamily, to: str | None = None
) -> Iterator[tuple[socket.socket, socket.socket]]:
    """A client's end and the server's."""
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.bind((host, 0))
        listener.listen()
        with socket.create_connection((to or host, listener.getsockname()[1])) as client:
            server, _ = listener.accept()
            with server:
                yield client, server


def ends(server: socket.socket) -> tuple[tuple[str, int], tuple[str, int]]:
    return server.getpeername()[:2], server.getsockname()[:2]


@contextmanager
def holding(client: socket.socket, env: dict[str, str], *, orphan: bool = False) -> Iterator[int]:
    """Another process that holds the client's end, alone."""
    fd = client.fileno()
    code = HOLD if not orphan else f"import os; os.fork() and os._exit(0); os.setsid(); {HOLD}"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, env=env, pass_fds=[fd])
    client.close()
    try:
        yield child.pid
    finally:
        child.communicate()


@pytest.mark.parametrize(
    ("host", "family", "to"),
    [
        ("127.0.0.1", socket.AF_INET, None),
        ("127.0.0.9", socket.AF_INET, None),
        ("::1", socket.AF_INET6, None),
        ("::", socket.AF_INET6, "127.0.0.1"),
    ],
)
def test_the_other_end_is_found_by_its_addresses(
    tmp_path: Path, host: str, family: socket.AddressFamily, to: str | None
) -> None:
    try:
        with socket.socket(family) as trial:
            trial.bind((host, 0))
    except OSError as error:
        pytest.skip(f"{host} cannot be used here: {error}")
    with connected(host, family, to) as (client, server):
        found = find_socket(*ends(server))
        assert found is not None
        assert (found.inode, found.uid) == (os.fstat(client.fileno()).st_ino, os.getuid())
        assert find_holders(found.inode) == [os.getpid()]
        assert ProcCallers(tmp_path).look_at_neighbour(*ends(server)) is Standing.OWNER


def test_an_ipv6_socket_that_speaks_ipv4_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        try:
            client = socket.socket(socket.AF_INET6)
        except OSError as error:
            pytest.skip(f"no IPv6 here: {error}")
        with client:
            client.connect(("::ffff:127.0.0.1", listener.getsockname()[1]))
            server, _ = listener.accept()
            with server:
                found = find_socket(*ends(server))
                assert found is not None
                assert found.inode == os.fstat(client.fileno()).st_ino


def test_a_client_that_is_gone_is_unknown(tmp_path: Path) -> None:
    with connected("127.0.0.1", socket.AF_INET) as (client, server):
        theirs, ours = ends(server)
        client.close()
        assert ProcCallers(tmp_path).look_at_neighbour(theirs, ours) is Standing.UNKNOWN


def test_a_listener_is_not_taken_for_a_client(tmp_path: Path) -> None:
    """Where no connection fits, the kernel answers with a socket that listens on the port."""
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        assert find_socket(one.getsockname(), other.getsockname()) is None
        asked = ProcCallers(tmp_path).look_at_neighbour(one.getsockname(), other.getsockname())
        assert asked is Standing.UNKNOWN


def test_what_the_server_started_is_an_agents(tmp_path: Path) -> None:
    with connected("127.0.0.1", socket.AF_INET) as (client, server), holding(client, {}):
        assert ProcCallers(tmp_path).look_at_neighbour(*ends(server)) is Standing.AGENT


class Elsewhere(ProcCallers):
    """A server that is not an ancestor of this test's processes."""

    def __init__(self, data_dir: Path) -> None:
        super().__init__(data_dir)
        self._me = -1


@pytest.mark.parametrize(("whose", "standing"), [("ours", Standing.AGENT), ("others", Standing.OWNER)])
def test_the_tag_tells_an_agent_that_has_lost_its_parent(
    tmp_path: Path, whose: str, standing: Standing
) -> None:
    folder = folder_id(tmp_path) if whose == "ours" else "0" * 12
    env = {TAG: str(Tag(folder, "boot", "session", "1"))}
    with connected("127.0.0.1", socket.AF_INET) as (client, server), holding(client, env, orphan=True) as pid:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert Elsewhere(tmp_path).look_at_neighbour(*ends(server)) is standing


@needs("cgroups")
def test_the_group_tells_an_agent_that_has_lost_everything_else(tmp_path: Path) -> None:
    group = find_cgroups(tmp_path, "boot", Ceilings(processes=99, memory=0)).make("1")
    with connected("127.0.0.1", socket.AF_INET) as (client, server), holding(client, {}) as pid:
        assert Elsewhere(tmp_path).look_at_neighbour(*ends(server)) is Standing.OWNER
        with group.open_join_fds() as fds:
            for fd in fds:
                os.write(fd, str(pid).encode())
        assert Elsewhere(tmp_path).look_at_neighbour(*ends(server)) is Standing.AGENT
        assert Elsewhere(tmp_path / "other").look_at_neighbour(*ends(server)) is Standing.OWNER
    group.remove()


def test_one_agent_among_the_holders_is_enough(tmp_path: Path) -> None:
    env = {TAG: str(Tag(folder_id(tmp_path), "boot", "session", "1"))}
    with connected("127.0.0.1", socket.AF_INET) as (client, server):
        kept = client.dup()
        with kept, holding(client, env):
            assert Elsewhere(tmp_path).look_at_neighbour(*ends(server)) is Standing.AGENT


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become an ordinary user")
def test_a_server_of_an_ordinary_user_tells_them_apart() -> None:
    """A program that hides from its own user may be an agent: it is not trusted."""
    done = subprocess.run(
        [sys.executable, "-c", ORDINARY], capture_output=True, text=True, check=True, timeout=60
    )
    said = dict(line.split() for line in done.stdout.splitlines())
    assert said == {"neighbour": "owner", "root": "owner", "hidden": "unknown", "agent": "agent"}


def test_the_peer_of_a_unix_socket_is_told_by_the_kernel(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        assert ProcCallers(tmp_path).identify_peer(ours) is Standing.OWNER


def test_a_peer_that_has_ended_is_unknown_and_a_child_is_an_agent(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    code = f"import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect({path!r}); sys.stdin.read()"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, env={})
        end, _ = listener.accept()
        with end:
            assert ProcCallers(tmp_path).identify_peer(end) is Standing.AGENT
            child.communicate()
            assert ProcCallers(tmp_path).identify_peer(end) is Standing.UNKNOWN


REUSED = """
import os, socket, sys
from pathlib import Path
from clawdforge.drivers.processes import peers
from clawdforge.drivers.processes.callers import ProcCallers

if sys.argv[1] == "old":
    peers.SO_PEERPIDFD = 9999  # an option that no kernel knows

def run(work):
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    return pid

with socket.socket(socket.AF_UNIX) as listener:
    listener.bind("")  # the kernel finds a name
    listener.listen()
    end = socket.socket(socket.AF_UNIX)
    ready, told = os.pipe()
    stay, leave = os.pipe()

    def connect():
        end.connect(listener.getsockname())
        os.write(told, b".")
        os.close(leave)
        os.read(stay, 1)

    first = run(connect)
    os.read(ready, 1)
    ours, _ = listener.accept()
callers = ProcCallers(Path("/"))
callers._me = -1  # as if somebody else had started them all
print(callers.identify_peer(ours).value)
os.close(leave)
os.waitpid(first, 0)
print(callers.identify_peer(ours).value)
Path("/proc/sys/kernel/ns_last_pid").write_text(str(first - 1))
again, over = os.pipe()
second = run(lambda: (os.close(over), end.close(), os.write(told, b"."), os.read(again, 1)))
os.read(ready, 1)
print("the same number" if second == first else f"{first} and {second}")
print(callers.identify_peer(ours).value)
os.close(over)
os.waitpid(second, 0)
"""


@needs("chosen-pid")
@pytest.mark.parametrize("kernel", ["new", "old"])
def test_a_program_that_got_the_number_of_the_peer_is_not_taken_for_it(kernel: str) -> None:
    done = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", REUSED, kernel],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    said = done.stdout.splitlines()
    assert said == ["owner", "unknown", "the same number", "unknown"], done.stderr


HIDDEN = """
import ctypes, encodings.idna, os, socket, subprocess, sys
from pathlib import Path
from clawdforge.drivers.processes.callers import ProcCallers

subprocess.run(["mount", "-t", "proc", "-o", "hidepid=2", "proc", "/proc"], check=True)

def be_visible(value):
    ctypes.CDLL(None).prctl(4, value, 0, 0, 0)

def become_ordinary():
    os.setgid(65534), os.setuid(65534)
    be_visible(1)  # as a program is that was started by an ordinary user

def connect_from_child(before, after):
    \"\"\"Over both kinds of sockets, from the child of a child; each of them does something first.\"\"\"
    if os.fork() == 0:
        before()
        if os.fork() == 0:
            after()
            tcp = socket.create_connection(listener.getsockname())
            unix = socket.socket(socket.AF_UNIX)
            unix.connect(other.getsockname())
            tcp.recv(1)  # until the server's end is closed
        else:
            os.wait()
        os._exit(0)
    return listener.accept()[0], other.accept()[0]

listener = socket.create_server(("127.0.0.1", 0))
other = socket.socket(socket.AF_UNIX)
other.bind("")  # the kernel finds a name
other.listen()
ends = {
    "person": connect_from_child(lambda: None, become_ordinary),  # as below sshd, which is root's
    "root": connect_from_child(lambda: None, lambda: None),
}
if os.fork() == 0:
    become_ordinary()
    ends["agent"] = connect_from_child(lambda: None, lambda: None)
    ends["below one that hides"] = connect_from_child(lambda: be_visible(0), lambda: be_visible(1))
    callers = ProcCallers(Path("/"))
    for name, (tcp, unix) in ends.items():
        found = callers.look_at_neighbour(tcp.getpeername(), tcp.getsockname())
        print(name, found.value, callers.identify_peer(unix).value, sep=": ", flush=True)
    os._exit(0)
os.wait()
"""


@needs("hidepid")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can become an ordinary user")
def test_processes_of_others_that_are_hidden_do_not_lock_a_person_out() -> None:
    done = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", sys.executable, "-c", HIDDEN],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.splitlines() == [
        "person: owner: owner",
        "root: owner: owner",
        "agent: agent: agent",
        "below one that hides: unknown: unknown",
    ], done.stderr
