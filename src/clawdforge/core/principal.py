"""Who is calling."""

from dataclasses import dataclass

from clawdforge.wire.scopes import Scope


@dataclass(frozen=True, slots=True)
class Principal:
    """An app, the operator (`admin`), or the agent of one session, by which credential."""

    app: str
    admin: bool = False
    token_id: str | None = None
    scopes: frozenset[str] = frozenset()
    session_id: str | None = None  # of an agent that calls back: it has this session and those it made

    @property
    def may_decide(self) -> bool:
        """Whether it may say what agents are allowed to do."""
        return Scope.DECIDE in self.scopes
