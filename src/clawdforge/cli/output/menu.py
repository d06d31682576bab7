"""The menu below a question of the agent. At first nothing is chosen, so that typing decides nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from clawdforge.cli.output.lines import Line, clean
from clawdforge.cli.tables import one_line
from clawdforge.wire.turn import Decision

CHOICES: Final = (Decision.ALLOW_ONCE, Decision.ALLOW_ALWAYS, Decision.REJECT)
NAME_WIDTH: Final = 60
HINT: Final = "↑ ↓ or a number chooses, Enter confirms · Ctrl-O shows all of it"


@dataclass(slots=True)
class Menu:
    """One for each question. `chosen` is the number of a choice, from 1."""

    request: Mapping[str, Any]
    chosen: int | None = None

    def move(self, step: int) -> None:
        """The next or the previous choice; from nowhere, to the first or the last."""
        at = 0 if self.chosen is None and step > 0 else (self.chosen or len(CHOICES) + 1)
        self.chosen = min(max(at + step, 1), len(CHOICES))

    def choose(self, number: int) -> None:
        self.chosen = number

    @property
    def decision(self) -> Decision | None:
        """What Enter would confirm."""
        return None if self.chosen is None else CHOICES[self.chosen - 1]

    def lines(self) -> list[Line]:
        words = ("allow once", f"allow always, in this session: {self._scope()}", "refuse")
        found: list[Line] = []
        for number, text in enumerate(words, 1):
            is_chosen = number == self.chosen
            found.append([("warn" if is_chosen else "dim", f"{'▸' if is_chosen else ' '} {number} {text}")])
        return [*found, [("dim", f"  {HINT}")]]

    def _scope(self) -> str:
        """What `always` covers: this tool, and this kind of use."""
        tool = one_line(clean(str(self.request.get("tool") or "this tool")), NAME_WIDTH)
        kind = one_line(clean(str(self.request.get("kind") or "")), NAME_WIDTH)
        return f"{tool} ({kind})" if kind else tool
