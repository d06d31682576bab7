"""Many messages at once: cut, archived, restored, copied and indexed in slices that hold the writer shortly.

What fits into one slice is changed on the spot. For more than that, marks on the session say which messages
count as cut or archived; readers go by them from that commit on. The rows are marked afterwards, a slice
for each job, and when all are, the marks are taken away. Every step can be repeated after a crash.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from clawdforge.stores.sqlite.event_pages import END
from clawdforge.stores.sqlite.rows import Value
from clawdforge.stores.sqlite.view import SLICE_ROWS, SqliteView, last_fitting
from clawdforge.wire.base import Micros
from clawdforge.wire.errors import SessionBusy, SessionNotFound

COPY_ROWS: Final = 60  # a copied row is written to its table and to five indexes
INDEX_ROWS: Final = 20
INDEX_BYTES: Final = 1 << 14
NO_CUT: Final[dict[str, Any]] = {"cut_from": 0, "cut_to": 0, "cut_turns": "[]"}
BUSY: Final = "an earlier change of this history is not complete yet; try again in a moment"


@dataclass(frozen=True, slots=True)
class Marks:
    """Which messages of a session count as cut or archived though their own columns do not say so yet."""

    cut_from: int
    cut_to: int
    cut_turns: str
    archived_to: int
    last_message: int


class HistorySets(SqliteView):
    def hide_messages(self, session_id: str, seqs: Sequence[int], turns: Sequence[int]) -> None:
        marks = self._marks(session_id)
        if not seqs:
            return
        first, last = seqs[0], seqs[-1]
        crosses = marks.cut_from > first and marks.cut_from <= last
        end = self._slice_end("slice_visible", session=session_id, after=first - 1, before=END)
        if end == last and not crosses:
            self._run_set("cut_messages", session=session_id, after=first - 1, last=last)
            self._mark_turns(session_id, turns, cut=True)
        elif marks.cut_from:
            raise SessionBusy(BUSY)
        else:
            self._set_marks(session_id, _cover(marks, seqs, turns), -len(seqs))

    def archive_messages(self, session_id: str) -> int:
        marks = self._marks(session_id)
        end = self._slice_end("slice_visible", session=session_id, after=0, before=END)
        more = self._slice_end("slice_visible", session=session_id, after=end, before=END)
        if not (more or marks.cut_from or marks.archived_to):
            return self._run_set("archive_messages", session=session_id, after=0, last=end)
        count = self._number("count_visible", session=session_id)
        self._set_marks(session_id, replace(marks, archived_to=marks.last_message), -count)
        return count

    def restore_slice(self, session_id: str, seqs: Sequence[int], turns: Sequence[int], done: int) -> int:
        marks = self._marks(session_id)
        if not marks.cut_from:
            self._set_marks(session_id, _cover(marks, seqs, turns), 0)
        elif not _covers(marks, seqs):
            raise SessionBusy(BUSY)
        if done < len(seqs):
            some = seqs[done : done + SLICE_ROWS]
            last = self._named_end(session_id, some)
            some = [seq for seq in some if seq <= last]
            self._run_set("restore_messages", session=session_id, seqs=json.dumps(some))
        else:
            some = turns[done - len(seqs) :][:SLICE_ROWS]
            self._mark_turns(session_id, some, cut=False)
        return done + len(some)

    def show_messages(self, session_id: str, seqs: Sequence[int], turns: Sequence[int]) -> None:
        marks = self._marks(session_id)
        if _covers(marks, seqs):  # their rows were restored a slice at a time
            self._set_marks(session_id, replace(marks, **NO_CUT), len(seqs))
        elif self.fits_at_once(session_id, seqs):
            self._run_set("restore_messages", session=session_id, seqs=json.dumps(list(seqs)))
            self._mark_turns(session_id, turns, cut=False)
            self.refresh_index()
        else:
            raise SessionBusy(BUSY)

    def finish_change(self, session_id: str) -> bool:
        marks = self._marks(session_id)
        if marks.cut_from:
            if not self._finish_cut(session_id, marks):
                return False
            marks = replace(marks, **NO_CUT)
        elif marks.archived_to:
            before = marks.archived_to + 1
            last = self._slice_end("slice_unmarked", session=session_id, after=0, before=before)
            if last:
                self._run_set("archive_messages", session=session_id, after=0, last=last)
                return False
            marks = replace(marks, archived_to=0)
        else:
            return True
        self._set_marks(session_id, marks, 0)
        return not (marks.cut_from or marks.archived_to)

    def copy_history(self, source: str, target: str, *, after: int, through: int, at: Micros) -> int:
        self._need_session(source)
        key: dict[str, Value] = {"session": source, "target": target, "after": after}
        found = self._slice_end(
            "slice_visible", session=source, after=after, before=through + 1, limit=COPY_ROWS
        )
        last = found or through
        copied = list(self._db.rows(self._q.sets["copy_turns"], {"app": self.app, **key, "last": last}))
        self._run_set("copy_messages", **key, last=last, last_id=self._last_message_id())
        changed = self._run_set(
            "after_copy",
            target=target,
            at=at,
            last_turn=max((index for index, _ in copied), default=0),
            started=sum(started for _, started in copied),
        )
        if not changed:
            raise SessionNotFound
        self.bring(target, after=after, last=last, turns=[index for index, _ in copied])
        if after == 0:  # a short fork can be searched at once
            self.refresh_index()
        return last

    def bring(self, session_id: str, *, after: int, last: int, turns: Sequence[int]) -> None:
        self._run_set("bring_messages", target=session_id, after=after, last=last)
        if turns:
            self._run_set("bring_turns", target=session_id, turns=json.dumps(list(turns)))

    def reveal_session(self, session_id: str) -> None:
        if not self._run_set("reveal_session", session=session_id):
            raise SessionNotFound

    def refresh_index(self) -> bool:
        stale = list(self._db.rows(self._q.sets["stale_messages"], {"app": self.app, "limit": INDEX_ROWS}))
        room = INDEX_BYTES
        for number, visible, size in stale:
            if room <= 0:
                return False
            room -= size
            self._run_set("add_to_index" if visible else "remove_from_index", id=number)
            self._run_set("not_stale", id=number)
        return len(stale) < INDEX_ROWS

    def _finish_cut(self, session_id: str, marks: Marks) -> bool:
        after, before = marks.cut_from - 1, marks.cut_to + 1
        last = self._slice_end("slice_unmarked", session=session_id, after=after, before=before)
        if last:
            self._run_set("cut_messages", session=session_id, after=after, last=last)
            return False
        params: dict[str, Value] = {"app": self.app, "session": session_id, "limit": SLICE_ROWS}
        turns = [int(index) for (index,) in self._db.rows(self._q.sets["unmarked_turns"], params)]
        self._mark_turns(session_id, turns, cut=True)
        return len(turns) < SLICE_ROWS

    def _mark_turns(self, session_id: str, turns: Sequence[int], *, cut: bool) -> None:
        self._run_set("mark_turns", session=session_id, cut=int(cut), turns=json.dumps(list(turns)))

    def _marks(self, session_id: str) -> Marks:
        row = self._db.row(self._q.sets["marks"], {"app": self.app, "session": session_id})
        if row is None:
            raise SessionNotFound
        return Marks(*row)

    def _set_marks(self, session_id: str, marks: Marks, shown: int) -> None:
        self._run_set(
            "set_marks",
            session=session_id,
            cut_from=marks.cut_from,
            cut_to=marks.cut_to,
            cut_turns=marks.cut_turns,
            archived_to=marks.archived_to,
            shown=shown,
        )

    def _slice_end(self, name: str, **params: Value) -> int:
        """The last seq of a slice; 0 when there is nothing in it."""
        rows = self._db.rows(self._q.sets[name], {"app": self.app, "limit": SLICE_ROWS, **params})
        return last_fitting(rows)

    def _run_set(self, name: str, /, **params: Value) -> int:
        return self._db.run(self._q.sets[name], {"app": self.app, **params})

    def _need_session(self, session_id: str) -> None:
        if self._db.row(self._q.tx["state"], {"app": self.app, "session": session_id}) is None:
            raise SessionNotFound

    def _last_message_id(self) -> int:
        key: dict[str, Value] = {"app": self.app}
        row = self._db.row(self._q.tx["last_message_id"], key)
        if row is None:
            self._run("add_message_range")
            row = self._db.row(self._q.tx["last_message_id"], key)
        return int(row[0]) if row else 0


def _cover(marks: Marks, seqs: Sequence[int], turns: Sequence[int]) -> Marks:
    """Marks for a cut that goes from the first of these to the end of the history."""
    return replace(marks, cut_from=seqs[0], cut_to=marks.last_message, cut_turns=json.dumps(_runs(turns)))


def _covers(marks: Marks, seqs: Sequence[int]) -> bool:
    return bool(seqs) and 0 < marks.cut_from <= seqs[0] and seqs[-1] <= marks.cut_to


def _runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Rising numbers as pairs of first and last."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found
