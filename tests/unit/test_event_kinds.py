"""Every type of event has a class with its fields, and nothing of what was sent changes by it."""

from typing import get_args

import pytest

from clawdforge.wire.event import Event, EventType, encode_body, number
from clawdforge.wire.event_kinds import KINDS, AnyEvent, PermissionRequestedEvent, TurnEndedEvent, narrow
from tests.wire_samples import AT, OWN


def test_every_type_has_one_class() -> None:
    assert set(KINDS) == {kind.value for kind in EventType}
    assert set(KINDS.values()) == set(get_args(AnyEvent))


@pytest.mark.parametrize("kind", sorted(OWN))
def test_what_was_sent_stays_as_it_was(kind: EventType) -> None:
    turn, fields = OWN[kind]
    plain = Event.model_validate_json(number(7, encode_body(kind, turn, AT, fields)))
    typed = narrow(plain)
    assert type(typed) is KINDS[kind]
    assert isinstance(typed, Event)
    for dumped in (typed.model_dump(), typed.model_dump(exclude_unset=True)):
        assert dumped in (plain.model_dump(), plain.model_dump(exclude_unset=True))
    for name, value in fields.items():
        if hasattr(KINDS[kind], name) and value is not None:
            assert getattr(typed, name) == value


def test_what_was_not_sent_has_a_default_and_an_unknown_type_stays_an_event() -> None:
    ended = narrow(Event(seq=1, ts="", type="turn.ended"))
    assert isinstance(ended, TurnEndedEvent)
    assert (ended.outcome, ended.error, ended.usage) == ("completed", None, {})
    asked = narrow(Event.model_validate({"seq": 1, "ts": "", "type": "permission.requested", "kind": None}))
    assert isinstance(asked, PermissionRequestedEvent)
    assert (asked.kind, asked.permission_id) == ("", "")
    assert type(narrow(Event(seq=1, ts="", type="brand.new"))) is Event
