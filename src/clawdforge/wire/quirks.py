"""What an agent is known to do in its own way. Data that drivers go by; no code asks for an agent's name."""

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

FailureKind: TypeAlias = Literal[
    "lost", "no_credit", "too_long", "rate_limited", "overloaded", "login", "refused"
]
EtcName: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]*(/[a-z0-9_-][a-z0-9._-]*)+$")
]
"""A file in a folder of /etc. Those of the system itself lie in /etc, or in folders that are never shown."""


class Quirks(BaseModel):
    """Each has the value of an agent that keeps to the protocol."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    load: bool = Field(True, description="`session/load` may be used; false if it does harm")
    resume: bool = Field(True, description="`session/resume` may be used; false if it does harm")
    replays_on_resume: bool = Field(
        False, description="`session/resume` replays the history: evidence of what it remembers"
    )
    end_turn_on_cancel: bool = Field(
        False, description="it answers a cancelled prompt with `end_turn`, which then counts as `cancelled`"
    )
    forgets_cancelled: bool = Field(
        False, description="it drops a turn that was cancelled from its memory; it is told of it again"
    )
    settle_ms: int = Field(
        0,
        ge=0,
        le=10_000,
        description="how long after an answer its memory reaches the disk; its home is not copied before"
        " nothing has moved in it for so long, and it is not ended before that",
    )
    late_ms: int = Field(
        0,
        ge=0,
        le=10_000,
        description="how long after its answer a message still belongs to the turn",
    )
    usage: Literal["turn", "last_call", "per_call", "cumulative", "none"] = Field(
        "turn",
        description="what its token counts mean: the sum of the turn, only the last call to the model "
        "(marked as estimated if tools ran), one call each in `_meta.usage` of its updates, a"
        " running total, or nothing that can be trusted",
    )
    counter: Literal["process", "session"] = Field(
        "process",
        description="whether its running totals of tokens and cost start again with each process, or "
        "continue when the session is loaded",
    )
    adapter: bool = Field(
        False,
        description="it only speaks for another program, its child: when that has ended in the middle of a"
        " turn and nothing is said of it for ten seconds, the turn fails and the agent is started anew",
    )
    side_requests: bool = Field(
        False,
        description="it makes a request of its own beside the first prompt, whose cost it counts and whose "
        "tokens it does not: that turn is marked as estimated",
    )
    transcript_chars: int = Field(
        400_000,
        ge=1000,
        le=10_000_000,
        description="how much of a conversation it can be told at once, in characters; about four are a "
        "token",
    )
    caches: list[str] = Field(
        [],
        description="paths in its home that copies of it leave out, beside the caches of npm, bun, pip, uv "
        "and the like: what it fetches again by itself",
    )
    contained_env: dict[str, str] = Field(
        {},
        description="variables that it is given inside bubblewrap, such as those that switch off a sandbox "
        "of its own, which cannot stand in ours; those of the server's environment come first",
    )
    contained_etc: dict[EtcName, str] = Field(
        {},
        description="files that it sees below `/etc` inside bubblewrap, and their text: settings for all"
        " users of a machine, which say what its variables cannot. They are read-only and in no home",
    )
    failed_meta: list[str] = Field(
        [],
        description="keys, one below the other in the `_meta` of an update about the session, and then a"
        " value: with that it tells that the turn has failed, although it answers `end_turn`. Its text from"
        " there on says why",
    )
    failures: dict[FailureKind, list[str]] = Field(
        {},
        description="words in which it tells why a prompt failed, by what they mean, beside those that are "
        "known of all agents",
    )
