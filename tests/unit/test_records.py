"""Records that a maker makes and changes are those that dataclasses make."""

from dataclasses import FrozenInstanceError, replace

import pytest

from clawdforge.core.models.rows import SessionRow, TurnRow
from clawdforge.core.records import Maker
from clawdforge.wire.turn import TurnState

SESSION = SessionRow(app_name="a", session_id="s", agent="x", cwd="/w", created_at=1, updated_at=2)
TURN = TurnRow(session_id="s", turn_index=1, state=TurnState.QUEUED, prompt="p", queued_at=1)


@pytest.mark.parametrize("row", [SESSION, TURN])
def test_what_is_read_makes_the_same_again(row: SessionRow | TurnRow) -> None:
    maker = Maker(type(row))
    again = maker.make(maker.read(row))
    assert again == row
    assert again is not row
    assert type(again) is type(row)
    with pytest.raises(FrozenInstanceError):
        again.session_id = "another"  # type: ignore[misc]


def test_a_change_is_what_replace_makes() -> None:
    maker = Maker(TurnRow)
    changed = maker.change(TURN, state=TurnState.RUNNING, started_at=5)
    assert changed == replace(TURN, state=TurnState.RUNNING, started_at=5)
    assert TURN.state is TurnState.QUEUED


def test_what_is_no_field_is_refused() -> None:
    with pytest.raises(KeyError):
        Maker(TurnRow).change(TURN, no_such_field=1)
    with pytest.raises(TypeError, match="missing"):
        Maker(TurnRow).make([1])
