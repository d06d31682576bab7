"""A whole server without its port, for tests: its settings, and prompts that are given to it."""

from pathlib import Path

from clawdforge import scripted
from clawdforge.core.services.access import LOCAL_APP
from clawdforge.parts import Parts
from clawdforge.settings import Settings
from clawdforge.wire.event import EventType
from clawdforge.wire.turn import Outcome, TurnRequest

APP = LOCAL_APP


def make_settings(tmp_path: Path, **more: float) -> Settings:
    agents = {"scripted": {"command": scripted.command()}}
    fixed = {"data_dir": tmp_path / "data", "agents": agents, "default_agent": "scripted", "sandbox": "off"}
    fixed["spare_agents"] = 0
    return Settings.model_validate({**fixed, **more})


async def submit(parts: Parts, session_id: str, prompt: str) -> int:
    submitted = await parts.services.turns.submit(APP, session_id, TurnRequest(prompt=prompt), None)
    return submitted.turn.turn_index


async def say(parts: Parts, session_id: str, prompt: str) -> int:
    turn_index = await submit(parts, session_id, prompt)
    turn = await parts.services.turns.wait(APP, session_id, turn_index)
    assert turn.outcome is Outcome.COMPLETED, turn
    return turn_index


async def wait_for_text(parts: Parts, session_id: str) -> None:
    """Until the agent is at work and has said something."""
    async for events in parts.services.log.follow(APP, session_id, 0):
        if any(event.type == EventType.TEXT for event in events):
            return
