"""Attacks on the walls inside an agent's process, as one program that says which of them got through."""

import json
import sys
from typing import Final

SYSTEM_CALLS: Final = """
import ctypes, errno, json, mmap, os, platform, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
REFUSED = (errno.EPERM, errno.ENOSYS, errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT)

def call(function, *arguments):
    ctypes.set_errno(0)
    return function(*arguments) >= 0 or ctypes.get_errno() not in REFUSED

def in_child(attempt):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if attempt() else 1)
    return os.waitpid(pid, 0)[1] == 0

def number(name):
    x86 = {"clone": 56, "keyctl": 250, "kcmp": 312, "process_vm_readv": 310, "adjtimex": 159}
    arm = {"clone": 220, "keyctl": 219, "kcmp": 272, "process_vm_readv": 270, "adjtimex": 171}
    return (x86 if platform.machine() == "x86_64" else arm)[name]

def clone_with_flags():
    pid = libc.syscall(number("clone"), 0x10000000 | 17, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    return pid > 0

def clone3():
    flags = (ctypes.c_uint64 * 11)(0x10000000, 0, 0, 0, 17)
    pid = libc.syscall(435, flags, ctypes.sizeof(flags))
    if pid == 0:
        os._exit(0)
    return pid > 0

def trace_a_child():
    pid = os.fork()
    if pid == 0:
        os.read(a, 1)
        os._exit(0)
    traced = libc.ptrace(0x4206, pid, 0, 0) == 0
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return traced

def steal_from_a_child():
    pid = os.fork()
    if pid == 0:
        os.read(a, 1)
        os._exit(0)
    taken = libc.syscall(438, os.pidfd_open(pid), 0, 0) >= 0
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return taken

def read_memory():
    target = ctypes.create_string_buffer(b"secret")
    out = ctypes.create_string_buffer(6)
    local = (ctypes.c_uint64 * 2)(ctypes.addressof(out), 6)
    remote = (ctypes.c_uint64 * 2)(ctypes.addressof(target), 6)
    whole = (ctypes.c_long(n) for n in (number("process_vm_readv"), os.getpid()))
    one, none = ctypes.c_long(1), ctypes.c_long(0)
    return libc.syscall(*whole, local, one, remote, one, none) == 6

def open_socket(family, protocol):
    try:
        socket.socket(family, socket.SOCK_RAW, protocol).close()
    except OSError as error:
        return error.errno not in REFUSED
    return True

def type_into_a_terminal():
    # A bad descriptor is found out behind the wall.
    return call(libc.ioctl, -1, 0x5412, None)

def type_with_dirt_above():
    return call(libc.syscall, 16 if platform.machine() == "x86_64" else 29, ctypes.c_long(-1),
                ctypes.c_long(0x7777777700005412), None)

def call_as_32_bits():
    code = mmap.mmap(-1, 4096, prot=7)
    code.write(bytes([0xB8, 20, 0, 0, 0, 0xCD, 0x80, 0xC3]))  # getpid, as a program for the i386 asks
    at = ctypes.addressof(ctypes.c_char.from_buffer(code))
    return ctypes.CFUNCTYPE(ctypes.c_int)(at)() > 0

def fails_not(attempt):
    try:
        attempt()
    except OSError:
        return False
    return True

def by_path(attempt):
    open("plain", "w").close()
    return fails_not(lambda: attempt("plain")) and os.stat("plain").st_mode & 0o6000 != 0

def by_descriptor(attempt):
    with open("plain", "w") as file:
        return fails_not(lambda: attempt(file.fileno())) and os.fstat(file.fileno()).st_mode & 0o6000 != 0

def opens_new(mode):
    fails_not(lambda: os.remove("new"))
    os.umask(0)
    made = fails_not(lambda: os.close(os.open("new", os.O_CREAT | os.O_WRONLY, mode)))
    return made and os.stat("new").st_mode & 0o6000 != 0

a, b = os.pipe()
found = {
    "unshare a user namespace": in_child(lambda: call(libc.unshare, 0x10000000)),
    "unshare a time namespace with a user's": in_child(lambda: call(libc.unshare, 0x10000080)),
    "clone into a user namespace": clone_with_flags(),
    "clone3 into a user namespace": clone3(),
    "trace a child": trace_a_child(),
    "take a descriptor of a child": steal_from_a_child(),
    "read memory across processes": read_memory(),
    "compare processes": call(libc.syscall, number("kcmp"), os.getpid(), os.getpid(), 0, 0, 0),
    "ask for a key": call(libc.syscall, number("keyctl"), 0, -3, 1),
    "set up io_uring": call(libc.syscall, 425, 1, None),
    "read the clock's state": call(libc.syscall, number("adjtimex"), ctypes.create_string_buffer(512)),
    "talk to the kernel by netlink": open_socket(16, 16),
    "type into a terminal": type_into_a_terminal(),
    "type with dirt in the upper half": type_with_dirt_above(),
    "make a set-uid file by chmod": by_path(lambda path: os.chmod(path, 0o4755)),
    "make a set-uid file by fchmod": by_descriptor(lambda fd: os.fchmod(fd, 0o4755)),
    "make a set-gid file": by_path(lambda path: os.chmod(path, 0o2755)),
    "open a new file as set-uid": opens_new(0o4755),
}
if platform.machine() == "x86_64":
    found["call as 32 bits"] = in_child(call_as_32_bits)
print(json.dumps(found))
"""

SET_ID_FILES: Final = """
import ctypes, json, os, struct
libc = ctypes.CDLL(None, use_errno=True)
os.umask(0)
with open("full", "w") as full:
    full.write("#!")

def opens_new(path, flags):
    asked = struct.pack("QQQ", os.O_RDWR | flags, 0o6755, 0)
    fd = libc.syscall(437, ctypes.c_long(-100), path, asked, ctypes.c_long(len(asked)))
    if fd < 0:
        raise OSError(ctypes.get_errno(), "openat2")
    return fd

def keeps_its_bits(make_longer, path=b"new", flags=os.O_CREAT | os.O_EXCL):
    fd = opens_new(path, flags)
    try:
        make_longer(fd)
    except OSError:
        return False
    else:
        state = os.fstat(fd)
        return state.st_size > 0 and state.st_mode & 0o6000 != 0
    finally:
        os.close(fd)
        if flags & os.O_CREAT:
            os.remove(path)

def copy(call):
    def attempt(fd):
        with open("full") as source:
            call(source.fileno(), fd)
    return attempt

print(json.dumps({
    "write": keeps_its_bits(lambda fd: os.write(fd, b"#!")),
    "write without a name": keeps_its_bits(lambda fd: os.write(fd, b"#!"), b".", os.O_TMPFILE),
    "truncate": keeps_its_bits(lambda fd: os.ftruncate(fd, 10)),
    "reserve": keeps_its_bits(lambda fd: os.posix_fallocate(fd, 0, 10)),
    "copy": keeps_its_bits(copy(lambda source, fd: os.copy_file_range(source, fd, 2))),
    "send": keeps_its_bits(copy(lambda source, fd: os.sendfile(fd, source, 0, 2))),
}))
"""
"""Attempts to make a set-uid file by the call that has its mode in memory, and to get something into it."""

FILES: Final = """
import json, os, resource, signal, socket, sys
facts = json.loads(sys.argv[1])

def tried(attempt):
    try:
        attempt()
    except (OSError, EOFError):
        return False
    return True

def read(path):
    return lambda: open(path).read(1) or (_ for _ in ()).throw(EOFError)

def by_link():
    os.symlink(facts["token"], "link")
    read("link")()

found = {
    "read a token": tried(read(facts["token"])),
    "list the data folder": tried(lambda: os.listdir(facts["data"])),
    "read another home": tried(read(facts["other"])),
    "write into another home": tried(lambda: open(facts["other"], "a").write("x")),
    "follow a link": tried(by_link),
    "make a hard link": tried(lambda: os.link(facts["token"], "hard")),
    "move a file in": tried(lambda: os.rename(facts["movable"], "moved")),
    "remove a file": tried(lambda: os.remove(facts["removable"])),
    "shorten a file": tried(lambda: os.truncate(facts["short"], 0)),
    "make a file": tried(lambda: open(facts["data"] + "/made", "w").close()),
    "make a folder": tried(lambda: os.mkdir(facts["data"] + "/folder")),
    "make a socket": tried(lambda: socket.socket(socket.AF_UNIX).bind(facts["data"] + "/s")),
    "read the operator's file": tried(read(facts["elsewhere"])),
    "read the server's environment": tried(read(f"/proc/{facts['server']}/environ")),
    "list the server's descriptors": tried(lambda: os.listdir(f"/proc/{facts['server']}/root/proc")),
    "signal the server": tried(lambda: os.kill(facts["server"], 0)),
    "signal its keeper": tried(lambda: os.kill(os.getppid(), 0)),
    "connect to an abstract socket": tried(
        lambda: socket.socket(socket.AF_UNIX).connect(chr(0) + facts["abstract"])
    ),
    "change a setting of the kernel": tried(lambda: open("/proc/sys/kernel/core_pattern", "a").close()),
    "limit the server": tried(lambda: resource.prlimit(facts["server"], resource.RLIMIT_CPU)),
    "bind the server": tried(lambda: os.sched_setaffinity(facts["server"], facts["processors"])),
    "write shared memory of the machine": tried(lambda: open(facts["shared"], "a").write("x")),
}
print(json.dumps(found))
"""


def command(attacks: str, facts: dict[str, object] | None = None) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", attacks, json.dumps(facts or {})]
