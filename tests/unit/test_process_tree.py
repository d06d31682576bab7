"""The processes below another one are found alike whether the kernel lists them or every one is looked at."""

import subprocess
import sys

from clawdforge.drivers.processes.launcher import children
from clawdforge.drivers.processes.tree import descendants, kill_below, look_at_all
from tests.api.harness import until

TREE = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {!r}]); time.sleep(600)"


def test_one_look_at_all_processes_finds_what_the_kernel_lists() -> None:
    inner = TREE.format("import time; time.sleep(600)")
    with subprocess.Popen([sys.executable, "-c", TREE.format(inner)]) as top:
        try:
            until(lambda: len(descendants(top.pid)) == 2, "the tree")
            (middle,), list_children = children(top.pid), look_at_all()
            assert list_children(top.pid) == [middle]
            assert list_children(middle) == children(middle)
            assert descendants(top.pid) == [middle, *children(middle)]
        finally:
            kill_below(top.pid)
            top.kill()
