"""A request to stop a turn: the first counts, and who wants the turn taken back is heard in any case."""

from clawdforge.core.running.stops import Stop
from clawdforge.wire.turn import Outcome


def test_the_first_request_counts() -> None:
    stop = Stop()
    assert stop.request(Outcome.CANCELLED, "by a limit", limit="max_tokens")
    assert not stop.request(Outcome.INTERRUPTED, "the server was stopped")
    assert (stop.outcome, stop.reason, stop.limit) == (Outcome.CANCELLED, "by a limit", "max_tokens")
    assert not stop.rollback


def test_a_turn_that_a_limit_stops_can_still_be_taken_back() -> None:
    stop = Stop()
    stop.request(Outcome.CANCELLED, "by a limit", limit="max_tokens")
    stop.request(Outcome.CANCELLED, "cancelled", rollback=True)
    assert stop.rollback
    stop.request(Outcome.CANCELLED, "cancelled")
    assert stop.rollback
