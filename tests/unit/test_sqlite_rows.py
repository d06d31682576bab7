"""Rows that were kept by name are read by later versions, which have more columns."""

from clawdforge.core.models.rows import TurnRow
from clawdforge.stores.sqlite.rows import Codec
from clawdforge.wire.turn import TurnState

TURNS = Codec(TurnRow, "turns", ("session_id", "turn_index"))
ROW = TurnRow(
    session_id="s", turn_index=1, state=TurnState.QUEUED, prompt="hi", queued_at=1, limits={"max_tokens": 5}
)


def test_a_column_that_came_later_has_its_default() -> None:
    kept = TURNS.values(ROW)
    assert TURNS.read_named(kept) == ROW
    del kept["limits"], kept["stopped_by"], kept["files"]
    found = TURNS.read_named(kept)
    assert (found.limits, found.stopped_by, found.files) == ({}, None, ())
