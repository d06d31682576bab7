"""A program for the launcher's own interpreter is run in its process, and as if it had been started anew."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from clawdforge.drivers.processes.launching import EXECUTABLE, find_command

PROGRAM = """
import json, os, signal, sys
print(json.dumps({
    "name": __name__, "file": __file__, "argv": sys.argv, "pid": os.getpid(),
    "fds": sorted(map(int, os.listdir("/proc/self/fd"))),
    "main": sys.modules["__main__"].__dict__ is globals(),
    "own": [name for name in ("LIBC", "prctl", "bound") if name in globals()],
    "signals": [signal.getsignal(one) == signal.SIG_DFL for one in (signal.SIGTERM, signal.SIGHUP)],
    "no_new_privs": "NoNewPrivs:\\t1" in open("/proc/self/status").read(), "path": sys.path,
}), flush=True)
sys.exit(7)
"""


def launch(*command: str, mode: str = "exec") -> tuple[subprocess.Popen[bytes], bytes, bytes]:
    """The process, its output, and what the launcher has said of the start."""
    status, told = os.pipe()
    words = (*find_command(), mode, str(told), "0", "0", "0", "-", "--", *command)
    with subprocess.Popen(words, pass_fds=[told], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        os.close(told)
        out, _ = child.communicate(timeout=30)
    with os.fdopen(status, "rb") as said:
        return child, out, said.read()


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_it_is_the_same_process_and_looks_like_a_new_one(program: Path) -> None:
    child, out, said = launch(str(EXECUTABLE), "-I", "-S", str(program), "--flag")
    seen = json.loads(out)
    assert (said, child.returncode) == (b"S", 7)
    assert seen["pid"] == child.pid
    assert (seen["name"], seen["file"], seen["argv"]) == ("__main__", str(program), [str(program), "--flag"])
    assert seen["main"]
    assert seen["own"] == []
    assert seen["signals"] == [True, True]
    assert seen["no_new_privs"]
    assert seen["fds"] == [0, 1, 2, 3], "its own pipes, and the list that is being read"


def test_it_sees_what_it_would_see_in_an_interpreter_of_its_own(program: Path) -> None:
    here = json.loads(launch(str(EXECUTABLE), "-I", "-S", str(program))[1])
    alone = json.loads(
        subprocess.run([EXECUTABLE, "-I", "-S", program], capture_output=True, check=False).stdout
    )
    assert {**here, "pid": 0} == {**alone, "pid": 0, "no_new_privs": True}


def test_others_are_started_as_before(program: Path) -> None:
    for options in (("-I",), ("-S", "-I"), ("-I", "-S", "-E")):
        child, out, said = launch(str(EXECUTABLE), *options, str(program))
        assert (said, child.returncode) == (b"S", 7)
        assert json.loads(out)["argv"] == [str(program)]


def test_a_program_that_is_missing_is_what_the_interpreter_says_of_it(program: Path) -> None:
    program.unlink()
    child, _, said = launch(str(EXECUTABLE), "-I", "-S", str(program))
    assert (said, child.returncode) == (b"S", 2)


def test_what_is_wrong_with_a_program_is_its_own_failure(program: Path) -> None:
    program.write_text("this is no program")
    child, _, said = launch(str(EXECUTABLE), "-I", "-S", str(program))
    assert (said, child.returncode) == (b"S", 1)


def test_what_is_no_file_is_left_to_the_interpreter(program: Path) -> None:
    """Whoever waits for somebody to write into a pipe has been started, and keeps no other from that."""
    program.unlink()
    os.mkfifo(program)
    status, told = os.pipe()
    words = (*find_command(), "exec", str(told), "0", "0", "0", "-", "--", str(EXECUTABLE), "-I", "-S")
    with subprocess.Popen([*words, str(program)], pass_fds=[told]) as child:
        os.close(told)
        with os.fdopen(status, "rb") as said:
            assert said.read() == b"S"
        child.kill()


def test_a_keeper_stays_beside_it(program: Path) -> None:
    child, out, said = launch(str(EXECUTABLE), "-I", "-S", str(program), mode="keep")
    assert (said, child.returncode) == (b"S", 7)
    assert json.loads(out)["pid"] != child.pid
