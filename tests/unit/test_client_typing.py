"""What type checkers say to a caller of the SDK: a wrong word is found, an enum and its words are fine."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import PYRIGHT, needs

PROGRAM = """\
from clawdforge import AgentFailed, AnyEvent, AsyncForge, BudgetExceeded, Forge, TurnFailed  # wrong
from clawdforge.client.models import EventType, Permission, PermissionMode
from clawdforge.client.models import PermissionRequestedEvent, SessionState

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
    session.fork().turn("on", if_busy="reject", timeout=5).text()
    session.turn("x", on_permission=lambda request: request.tool == "read")
    session.turn("x", on_permission=lambda request: "allow_onse")  # wrong
    print(session.retry_turn("y").text(), forge.with_options(timeout=None, max_retries=0))
    try:
        session.turn("z")
    except (AgentFailed, BudgetExceeded) as error:
        print(error.code)
    with session.stream("s") as stream:
        for event in stream:
            if event.type == "turn.ended":
                print(event.outcome, event.duration_ms + 1)
                print(event.prompt)  # wrong
            elif event.type == "tool_call":
                print(event.name.upper(), event.args)
            elif event.type == "turn.finished":  # wrong
                pass
            print(event.seq, event.text)
            print(event.outcome)  # wrong
    for event in session.events():
        if event.type == EventType.TURN_STARTED.value:
            print(event.turn, event.message + 1)
            print(event.outcome)  # wrong
        if isinstance(event, PermissionRequestedEvent):
            session.decide(event.permission_id, "reject")


def handle(event: AnyEvent) -> str | None:
    match event.type:
        case "turn.queued":
            return event.prompt
        case "text":
            return event.text
        case _:
            return None


async def decide(request: Permission) -> bool:
    return request.kind == "read"


async def main() -> None:
    async with AsyncForge(timeout=30, max_retries=4) as forge, forge.session() as session:
        await session.turn("x", on_permission=decide)
        await session.turn("x", on_permission=lambda request: True)


def blocks(forge: Forge) -> None:
    forge.attach("s").turn("x", on_permission=decide)  # wrong
"""


WRONG = {n for n, line in enumerate(PROGRAM.splitlines(), 1) if line.endswith("# wrong")}


@pytest.mark.slow
def test_a_type_checker_finds_what_is_wrong_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "program.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=110)
    found = {int(line) for line in re.findall(r"^program\.py:(\d+): error:", ran.stdout, re.MULTILINE)}
    assert found == WRONG, ran.stdout + ran.stderr


@pytest.mark.slow
@needs("pyright")
def test_another_type_checker_finds_the_same(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict", "include": ["program.py"]}')
    env = {**os.environ, "PATH": f"{PYRIGHT}:{os.environ.get('PATH', os.defpath)}"}
    command = ["pyright", "--pythonpath", sys.executable, "--outputjson"]
    ran = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=110
    )
    said = json.loads(ran.stdout)["generalDiagnostics"]
    found = {one["range"]["start"]["line"] + 1: one["message"] for one in said}
    assert set(found) == WRONG, found
