"""The tail of a followed session: a reader near its end looks at what is new, not at all of it."""

from clawdforge.core.event_model import StoredEvent
from clawdforge.core.log import TAIL_EVENTS, Tail


class Counted(StoredEvent):
    """An event that counts how often its number is asked for."""

    asked = 0

    def __getattribute__(self, name: str) -> object:
        if name == "seq":
            Counted.asked += 1
        return super().__getattribute__(name)


async def test_it_costs_what_is_new() -> None:
    tail = Tail()
    tail.extend(tuple(Counted(seq, "text", 1, b"x") for seq in range(1, TAIL_EVENTS + 1)))
    Counted.asked = 0
    found = tail.events_after(TAIL_EVENTS - 2)
    assert found is not None
    assert Counted.asked < 10
    assert [event.seq for event in found] == [TAIL_EVENTS - 1, TAIL_EVENTS]
    assert tail.events_after(TAIL_EVENTS) == []
    whole = tail.events_after(0)
    assert whole is not None
    assert [event.seq for event in whole] == list(range(1, TAIL_EVENTS + 1))
