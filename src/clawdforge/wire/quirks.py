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
        False,
        description="it drops a cancelled turn from its memory; the server tells it again",
    )
    settle_ms: int = Field(
        0,
        ge=0,
        le=10_000,
        description="how long after an answer its memory takes to reach the disk; its home is only copied, "
        "and the agent only ended, once nothing in it has changed for that long",
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
        description="it only speaks for another program, its child: if that ends in the middle of a turn and "
        "the adapter does not report it for ten seconds, the turn fails and the agent is "
        "restarted",
    )
    side_requests: bool = Field(
        False,
        description="it makes its own request beside the first prompt, and counts its cost but not its "
        "tokens: that turn is marked as estimated",
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
        description="paths that copies of its home leave out, beside the caches of npm, bun, pip, uv and the "
        "like: files it downloads again by itself",
    )
    contained_env: dict[str, str] = Field(
        {},
        description="variables that it gets inside bubblewrap, such as those that switch off its own sandbox,"
        " which cannot run inside ours; those of the server's environment take precedence",
    )
    contained_etc: dict[EtcName, str] = Field(
        {},
        description="files that it sees below `/etc` inside bubblewrap, and their text: machine-wide settings"
        " for what its variables cannot say. They are read-only and in no home",
    )
    failed_meta: list[str] = Field(
        [],
        description="nested keys in the `_meta` of an update about the session, and then a value, with which "
        "it reports that the turn has failed although it answers `end_turn`. Its text from there "
        "on says why",
    )
    failures: dict[FailureKind, list[str]] = Field(
        {},
        description="phrases with which it says why a prompt failed, grouped by meaning, in addition to those"
        " known for all agents",
    )
