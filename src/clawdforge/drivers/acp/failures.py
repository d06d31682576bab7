"""Tells what an agent's refusal of a prompt means: its own works, or the provider of its model.

The words are data, in `failures.toml`; an agent's quirks may add some. What nobody knows is its own works.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from clawdforge.wire.errors import (
    AgentAuthRequired,
    AgentError,
    AgentFailed,
    AgentLost,
    ContextTooLong,
    ModelNoCredit,
    ModelOverloaded,
    ModelRateLimited,
    ModelRefused,
)
from clawdforge.wire.quirks import FailureKind

TABLE: Final = Path(__file__).with_name("failures.toml")
AUTH_REQUIRED: Final = -32000
MAX_CHARS: Final = 8192
MAX_WAIT_SECS: Final = 7 * 86_400
STATUS: Final = re.compile(r"(?:error|status|code|http|response)[^0-9\n]{0,16}(\d{3})\b", re.IGNORECASE)
UNITS: Final = {"ms": 0.001, "milli": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
WAIT: Final = re.compile(
    r"(?:retry|try again|reset)[a-z _-]{0,20}(?:after|in|delay)[\"':= ]{1,6}"
    r"(\d{1,9}(?:\.\d{1,9})?) ?(ms|milli|s|m|h)?",
    re.IGNORECASE,
)
MOMENT: Final = re.compile(
    r"(?:limit reached\||resets? at )(\d{10}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)", re.IGNORECASE
)

CLASSES: Final[Mapping[FailureKind, type[AgentError]]] = {
    "lost": AgentLost,
    "no_credit": ModelNoCredit,
    "too_long": ContextTooLong,
    "rate_limited": ModelRateLimited,
    "overloaded": ModelOverloaded,
    "login": AgentAuthRequired,
    "refused": ModelRefused,
}
BROKEN: Final = (None, "lost", "login")
"""After these the process is of no use: its works are in disorder, or it must read its login anew."""


@dataclass(frozen=True, slots=True)
class Signs:
    """What one kind of failure is known by."""

    words: tuple[str, ...] = ()
    statuses: frozenset[int] = frozenset()
    codes: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Failure:
    """What a refusal means; `kind` is None for the agent's own works, of which nothing more is known."""

    kind: FailureKind | None
    retry_after: float | None = None

    @property
    def is_broken(self) -> bool:
        """Whether the agent's process should be replaced."""
        return self.kind in BROKEN

    def make_error(self, words: str, *, begun: bool, stderr: str) -> AgentError:
        """`begun` is whether the agent had said or done anything: then nobody may just try again."""
        heard: dict[str, Any] = {} if begun or self.kind is None else {"heard": False}
        if self.kind is None:
            return AgentFailed(words, stderr=stderr)
        found = CLASSES[self.kind]
        advice = (found.__doc__ or "").strip()
        return found(f"{words}; {advice}", stderr=stderr, retry_after=self.retry_after, **heard)


class Failures:
    """The table. Looking something up is linear in the length of the words, which are bounded."""

    def __init__(self, table: Mapping[FailureKind, Signs]) -> None:
        self._table = dict(table)

    @classmethod
    def read(cls, table: Path = TABLE) -> "Failures":
        with table.open("rb") as file:
            found: Mapping[str, Any] = tomllib.load(file)
        return cls({kind: _read_signs(found[kind]) for kind in CLASSES})

    def with_words(self, own: Mapping[FailureKind, Sequence[str]]) -> "Failures":
        """The same table with the words of one agent in it."""
        if not own:
            return self
        added = {kind: _read_signs({"words": words}).words for kind, words in own.items()}
        return Failures(
            {k: replace(signs, words=(*added.get(k, ()), *signs.words)) for k, signs in self._table.items()}
        )

    def judge(self, code: int, words: str, now: float) -> Failure:
        """`now` is the time in seconds since the epoch, for words that name a moment."""
        text = " ".join(words[:MAX_CHARS].split()).lower()
        statuses = {int(status) for status in STATUS.findall(text)}
        if is_login_missing(code, text):
            return Failure("login")
        for kind in CLASSES:
            signs = self._table[kind]
            if code in signs.codes or statuses & signs.statuses or any(word in text for word in signs.words):
                return Failure(kind, find_wait(words[:MAX_CHARS], now))
        return Failure(None)


def is_login_missing(code: int, words: str) -> bool:
    """Whether an agent says, in the protocol's own way, that somebody must log in first."""
    return code == AUTH_REQUIRED and "auth" in words.lower()


def find_wait(words: str, now: float) -> float | None:
    """How many seconds the words ask to wait; None if they do not say, or something senseless."""
    wait, moment = WAIT.search(words), MOMENT.search(words)
    if wait is not None:
        secs = float(wait[1]) * UNITS[(wait[2] or "s").lower()]
    elif moment is not None:
        secs = _seconds_of(moment[1]) - now
    else:
        return None
    return secs if 0 <= secs <= MAX_WAIT_SECS else None


def _seconds_of(moment: str) -> float:
    if moment.isdecimal():
        return float(moment)
    try:
        return datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp()
    except ValueError:  # the 30th of February
        return 0.0


def _read_signs(entry: Mapping[str, Any]) -> Signs:
    return Signs(
        tuple(" ".join(word.lower().split()) for word in entry.get("words", ())),
        frozenset(entry.get("statuses", ())),
        frozenset(entry.get("codes", ())),
    )
