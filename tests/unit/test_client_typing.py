"""What a type checker says to a caller of the SDK: a wrong word is found, an enum and its words are fine."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """\
from clawdforge import Forge
from clawdforge.client.models import PermissionMode, SessionState

with Forge() as forge, forge.session(permission_mode="aks") as session:  # wrong
    forge.create_session(permission_mode=PermissionMode.ASK, on_interrupt="retry", retention="keep")
    forge.create_session(retention="forever")  # wrong
    session.turn("hi", if_busy="queu")  # wrong
    session.decide("p", "yes")  # wrong
    session.permissions(state="decided")
    state: SessionState = session.state()
    print(state.titel)  # wrong
    print(state.title, state["title"], [turn.prompt for turn in session.turns()])
    print([row.turn_count for row in forge.list_sessions(state="open")])  # wrong
    session.fork().turn("on", if_busy="reject").text()
"""


@pytest.mark.slow
def test_a_type_checker_finds_what_is_wrong_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "program.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=110)
    found = {int(line) for line in re.findall(r"^program\.py:(\d+): error:", ran.stdout, re.MULTILINE)}
    wrong = {n for n, line in enumerate(PROGRAM.splitlines(), 1) if line.endswith("# wrong")}
    assert found == wrong, ran.stdout + ran.stderr
