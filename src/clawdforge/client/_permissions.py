"""What a caller's own function may answer when an agent asks for permission."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TypeAlias

    from clawdforge.wire.turn import DecisionWord, Permission

    Answer: TypeAlias = DecisionWord | bool | None
    OnPermission: TypeAlias = Callable[[Permission], Answer]
    AsyncOnPermission: TypeAlias = Callable[[Permission], Answer | Awaitable[Answer]]


def read_answer(answer: Answer) -> DecisionWord | None:
    """The decision that it stands for; None leaves the request to somebody else."""
    if isinstance(answer, bool):
        return "allow_once" if answer else "reject"
    return answer
