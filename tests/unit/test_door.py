"""The door: who gets in, who makes room, and for whom the server waits no longer."""

import pytest

from clawdforge.http.connections.door import Door, DoorLimits, peer_of
from clawdforge.http.connections.patience import PROGRESS_BYTES, Patience, Phase

LIMITS = DoorLimits(connections=4, per_peer=3)


class Visitor:
    """A connection that is what a test says."""

    def __init__(self, peer: str | None = "here", *, known: bool = True, idle: bool = False) -> None:
        self.peer = peer
        self.is_known = known
        self.is_idle = idle
        self.overdue = self.is_out = False

    def is_overdue(self, _limits: DoorLimits, _now: float) -> bool:
        return self.overdue

    def turn_out(self) -> None:
        self.is_out = True


async def test_one_address_has_its_limit_and_the_server_has_one() -> None:
    door = Door(LIMITS)
    inside = [Visitor() for _ in range(3)]
    assert all(door.admit(guest) for guest in inside)
    assert not door.admit(Visitor()), "a fourth of one address"
    assert door.admit(Visitor("there"))
    assert not door.admit(Visitor("elsewhere")), "a fifth in all"
    assert door.admit(Visitor(None)), "the operator's socket is not counted"
    door.leave(inside[0])
    assert (door.count, door.admit(Visitor("elsewhere"))) == (3, True)
    assert not any(guest.is_out for guest in inside)


async def test_strangers_make_room_first_then_those_without_a_request() -> None:
    door = Door(LIMITS)
    idle, old, young = Visitor(idle=True), Visitor(known=False), Visitor(known=False)
    for guest in (idle, old, young):
        assert door.admit(guest)
    outs = []
    for _ in range(3):
        assert door.admit(Visitor())
        outs.append((idle.is_out, old.is_out, young.is_out))
    assert outs == [(False, True, False), (False, True, True), (True, True, True)]
    assert not door.admit(Visitor())
    assert door.count == 3


async def test_one_address_makes_no_room_at_the_cost_of_another() -> None:
    door = Door(LIMITS)
    stranger = Visitor("there", known=False)
    for guest in (stranger, Visitor(), Visitor(), Visitor()):
        assert door.admit(guest)
    assert not door.admit(Visitor())
    assert not stranger.is_out
    assert door.admit(Visitor("elsewhere"))
    assert stranger.is_out


def test_whoever_is_overdue_is_turned_out() -> None:
    door = Door(LIMITS)
    late, operator, prompt = Visitor(), Visitor(None), Visitor()
    for guest in (late, operator, prompt):
        door.admit(guest)
    late.overdue = operator.overdue = True
    assert len(list(door.look(1.0))) == 2
    assert (late.is_out, operator.is_out, prompt.is_out) == (True, True, False)


@pytest.mark.parametrize(
    ("address", "peer"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::ffff:10.0.0.5", "10.0.0.5"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_a_peer_is_an_address_or_a_network(address: str, peer: str) -> None:
    assert peer_of(address) == peer


def is_over(patience: Patience, now: float, unsent: int = 0, *, is_reading: bool = True) -> bool:
    return patience.is_over(LIMITS, now, unsent, is_reading=is_reading)


@pytest.mark.parametrize(
    ("phase", "seconds"),
    [
        (Phase.HEADERS, LIMITS.header_secs),
        (Phase.BODY, LIMITS.body_secs),
        (Phase.REST, LIMITS.body_secs),
        (Phase.IDLE, LIMITS.idle_secs),
    ],
)
def test_each_wait_has_its_limit(phase: Phase, seconds: float) -> None:
    patience = Patience(0.0)
    patience.enter(phase, 100.0)
    assert not is_over(patience, 100.0 + seconds)
    assert is_over(patience, 100.1 + seconds)


def test_an_answer_may_take_as_long_as_it_takes() -> None:
    patience = Patience(0.0)
    patience.enter(Phase.ANSWER, 0.0)
    assert not is_over(patience, 10**6)


def test_a_body_has_to_come_on_unless_we_do_not_read_it() -> None:
    patience = Patience(0.0)
    patience.enter(Phase.BODY, 0.0)
    patience.receive(PROGRESS_BYTES)
    assert not is_over(patience, 21.0), "it came on"
    patience.receive(PROGRESS_BYTES - 1)
    assert not is_over(patience, 41.0)
    assert is_over(patience, 41.1), "a byte too little"
    assert not is_over(patience, 50.0, is_reading=False)
    assert not is_over(patience, 70.0)
    assert is_over(patience, 70.1)


def test_what_is_not_taken_counts_from_the_last_that_was() -> None:
    patience = Patience(0.0)
    patience.enter(Phase.ANSWER, 0.0)
    assert not is_over(patience, 0.0, unsent=100)
    assert not is_over(patience, 100.0, unsent=90), "some of it was taken"
    assert not is_over(patience, 200.0, unsent=95), "a heartbeat was added"
    assert not is_over(patience, 220.0, unsent=95)
    assert is_over(patience, 220.1, unsent=95)
    assert not is_over(patience, 221.0, unsent=0)
