"""How long one connection has kept the server waiting: for a request, for its body, or to take an answer."""

from enum import Enum, auto
from typing import Final

from clawdforge.http.connections.door import DoorLimits

PROGRESS_BYTES: Final = 16 * 1024
"""A body has to bring so much in `body_secs`, or its end."""


class Phase(Enum):
    """What the server waits for. In the last two of these it waits for nothing."""

    HEADERS = auto()
    BODY = auto()
    REST = auto()  # of a body, after its request was answered
    IDLE = auto()
    ANSWER = auto()


class Patience:
    def __init__(self, now: float) -> None:
        self.phase = Phase.HEADERS
        self._since = now
        self._received = 0
        self._unsent = 0
        self._unsent_since = now

    def enter(self, phase: Phase, now: float) -> None:
        self.phase, self._since, self._received = phase, now, 0

    def receive(self, size: int) -> None:
        self._received += size

    def is_over(self, limits: DoorLimits, now: float, unsent: int, *, is_reading: bool) -> bool:
        """`unsent` is what waits to be sent, `is_reading` whether we take what the client sends."""
        return self._is_not_taken(limits, now, unsent) or self._is_not_sent(limits, now, is_reading)

    def _is_not_taken(self, limits: DoorLimits, now: float, unsent: int) -> bool:
        if unsent == 0 or unsent < self._unsent:  # more is no progress: heartbeats add to it
            self._unsent_since = now
        self._unsent = unsent
        return now - self._unsent_since > limits.send_secs

    def _is_not_sent(self, limits: DoorLimits, now: float, is_reading: bool) -> bool:
        if self.phase is Phase.BODY and (self._received >= PROGRESS_BYTES or not is_reading):
            self.enter(Phase.BODY, now)
        waited = now - self._since
        if self.phase is Phase.HEADERS:
            return waited > limits.header_secs
        if self.phase in (Phase.BODY, Phase.REST):
            return waited > limits.body_secs
        is_idle = self.phase is Phase.IDLE and self._unsent == 0  # the last answer has its own time
        return is_idle and waited > limits.idle_secs
