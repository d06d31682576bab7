"""A stop that is typed while a prompt is handed over: which of the two comes first is chance."""

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from clawdforge.cli.repl import keys
from clawdforge.cli.repl.folds import Folds
from clawdforge.cli.repl.keys import Keys


@dataclass
class Stage:
    """What the keys know: a view of the session, a session that counts cancels, and notes that were shown."""

    running: int | None = None
    cancels: int = 0
    shown: list[str] = field(default_factory=list)

    @property
    def view(self) -> Any:
        return SimpleNamespace(running=self.running, queued=[], sent=[])

    @property
    def session(self) -> Any:
        return self

    async def cancel(self) -> Any:
        self.cancels += 1
        return SimpleNamespace(cancelled=True)

    def show(self, note: Any) -> None:
        self.shown.append(str(note))


@pytest.mark.parametrize("running", [1, None])
async def test_a_stop_ends_a_turn_whose_prompt_was_never_answered(
    running: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "HAND_OVER_SECS", 0.0)
    stage = Stage(running)
    pressed = Keys(cast("Any", stage), cast("Any", stage), Folds(), cast("Any", None))
    handing_over = asyncio.create_task(asyncio.Event().wait())
    pressed.watch(cast("Any", handing_over))
    pressed.interrupt()
    await pressed.finish()
    assert handing_over.cancelled()
    assert stage.cancels == (running or 0)
    assert bool(stage.shown) is (running is None)
