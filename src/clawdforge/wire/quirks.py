"""What an agent is known to do in its own way. Data that drivers go by; no code asks for an agent's name."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Quirks(BaseModel):
    """Each has the value of an agent that keeps to the protocol."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    load: bool = Field(True, description="`session/load` gives the session back; false where it does harm")
    resume: bool = Field(True, description="`session/resume` gives it back; false where it does harm")
    replays_on_resume: bool = Field(
        False, description="`session/resume` replays the history: evidence of what it remembers"
    )
    end_turn_on_cancel: bool = Field(
        False, description="it answers `end_turn` to a prompt that was cancelled; it counts as `cancelled`"
    )
    settle_ms: int = Field(
        0,
        ge=0,
        le=10_000,
        description="time it needs after an answer until its memory is on disk; its home is not copied, "
        "and it is not ended, before",
    )
    late_ms: int = Field(
        0,
        ge=0,
        le=10_000,
        description="what it sends so long after its answer still belongs to the turn",
    )
    usage: Literal["turn", "last_call", "per_call", "cumulative", "none"] = Field(
        "turn",
        description="what its token counts are: the turn's sum, those of the last call to the model only "
        "(marked estimated when tools ran), told call by call in `_meta.usage` of its updates, a running "
        "total, or nothing that can be believed",
    )
    counter: Literal["process", "session"] = Field(
        "process",
        description="how far its running totals of tokens and cost reach: they start again with each "
        "process, or go on when the session is loaded",
    )
