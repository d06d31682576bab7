"""Who is calling."""

from dataclasses import dataclass
from typing import Final

from clawdforge.wire.base import Micros
from clawdforge.wire.scopes import Scope

OPERATOR: Final = "operator"
"""Whose login is the operator's; no token has such an id."""


@dataclass(frozen=True, slots=True)
class Login:
    """A browser's cookie: until when it is good, and how often all of its holder were ended before it."""

    holder: str  # the id of a token, or OPERATOR
    ends_at: Micros
    round: int


@dataclass(frozen=True, slots=True)
class Principal:
    """An app, the operator (`admin`), or the agent of one session, by which credential."""

    app: str
    admin: bool = False
    token_id: str | None = None
    scopes: frozenset[str] = frozenset()
    session_id: str | None = None  # of an agent that calls back: it has this session and those it made
    login: Login | None = None  # of a browser: it has no more than the token, and ends with it
    traceparent: str | None = None  # of the caller's trace, if its request said so; see core/rules/traces.py

    @property
    def may_decide(self) -> bool:
        """Whether it may say what agents are allowed to do."""
        return Scope.DECIDE in self.scopes
