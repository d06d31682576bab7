"""What every wire shape stands on: the model bases, JSON values, and how times are rendered.

Times are kept as whole microseconds since the epoch. Each surface renders them its own way: whole
seconds (forge), float seconds (hermes), ISO text with whole seconds (deepagent), ISO text with
microseconds (events).
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict

Json: TypeAlias = dict[str, Any]
Micros: TypeAlias = int


class Request(BaseModel):
    """A body that a caller sends. Unknown fields are ignored, for the sake of old callers."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class StrictRequest(BaseModel):
    """A body on a surface that refuses unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Reply(BaseModel):
    """A body that the server sends. Fields that a newer server adds are kept, never refused."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True)


class Record(Mapping[str, Any], Reply):
    """A reply that old callers read as a dict: `record["key"]`, `.get`, `in`, `dict(record)`, `== {…}`.

    As a dict it has what was sent, nulls and unknown keys included; a default is only an attribute.
    """

    def __getitem__(self, key: str) -> Any:
        if key not in self.model_fields_set:
            raise KeyError(key)
        return getattr(self, key) if key in self.__dict__ else (self.model_extra or {})[key]

    def __iter__(self) -> Iterator[str]:  # type: ignore[override]  # a mapping's keys, not a model's pairs
        return iter([name for name in (*self.__dict__, *(self.model_extra or {})) if name in self])

    def __contains__(self, key: object) -> bool:
        return key in self.model_fields_set

    def __len__(self) -> int:
        return len(self.model_fields_set)


def to_seconds(at: Micros | None) -> int | None:
    """Whole seconds since the epoch."""
    return None if at is None else at // 1_000_000


def to_float(at: Micros | None) -> float | None:
    """Seconds since the epoch with a fraction."""
    return None if at is None else at / 1_000_000


def to_iso(at: Micros) -> str:
    """ISO 8601 in UTC with microseconds: `2026-11-15T09:30:00.123456Z`."""
    whole, fraction = divmod(at, 1_000_000)
    return f"{_whole_second(whole)}.{fraction:06d}Z"


@lru_cache(maxsize=16)  # events come by the thousand in a second, and formatting it is a tenth of their cost
def _whole_second(at: int) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S}"


def to_iso_seconds(at: Micros | None) -> str | None:
    """ISO 8601 in UTC with whole seconds."""
    return None if at is None else f"{_whole_second(at // 1_000_000)}Z"


def from_iso(text: str) -> Micros:
    """The inverse of `to_iso`, for ISO text in general."""
    moment = datetime.fromisoformat(text)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    delta = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds
