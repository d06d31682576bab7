"""The table of the benchmarks: rates, ratios to ours, what is kept as JSON, what becomes of it on a page."""

import asyncio
import xml.etree.ElementTree as ET
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from bench.bars import draw_bars
from bench.contenders import OURS, Contender
from bench.contests import Desk, stream_chunks
from bench.plain import Connection
from bench.table import Line, Table, as_text, cells
from bench.written import BEGIN, END, section, write_all

CHUNK = b"a chunk"


class AtOnce:
    """A connection to a server that says nothing for a while, and then everything in one piece."""

    SECS = 0.05

    async def stream(self, count: int) -> AsyncIterator[bytes]:
        async def pieces() -> AsyncIterator[bytes]:
            await asyncio.sleep(self.SECS)
            yield CHUNK * count

        return pieces()


async def test_chunks_that_come_in_one_piece_have_taken_the_time_until_it_came() -> None:
    dialect = SimpleNamespace(mark=CHUNK, stream=lambda _session, prompt: int(prompt.split()[1]))
    one = cast(Contender, SimpleNamespace(name="other", dialect=dialect))
    rate = await stream_chunks(Desk(one, cast(Connection, AtOnce()), "s"), 1000)
    assert 0 < rate <= 1000 / AtOnce.SECS


def make_table() -> Table:
    table = Table(
        about={
            "command": "python -m bench",
            "date": "2026-11-18 12:00 UTC",
            "commit": "0123456789",
            "machine": "2 cores",
            "load": [0.1, 1.5],
            "seconds": 600,
        }
    )
    table.versions = {OURS: {OURS: "1.2.3"}, "other": {"other": "4.5"}}
    table.put("many", "turns at once", "s", "other", 2.5)
    table.put("many", "turns at once", "s", OURS, 1.25)
    table.put("many", "only ours", "ms", OURS, 12345.6)
    table.put("many", "only theirs", "/s", "other", 0.01234)
    table.limit("many", "turns at once", "s", "a pipe", 1.0)
    table.left_out["third"] = "it is in | no registry"
    return table


def test_a_peer_is_shown_with_how_many_times_ours_it_is() -> None:
    both, ours, theirs = make_table().lines
    assert cells(both, [OURS, "other"]) == ["1.25", "2.5 (2 x)"]
    assert cells(ours, [OURS, "other"]) == ["12,300", ""]
    assert cells(theirs, [OURS, "other"]) == ["", "0.0123"]


def test_nothing_of_ours_is_no_ratio_and_no_failure() -> None:
    line = Line("row", "name", "B", {OURS: 0.0, "other": 5.0})
    assert cells(line, [OURS, "other"]) == ["0", "5 (-)"]


def test_the_text_has_every_line_once_ours_first_and_who_is_left_out() -> None:
    said = as_text(make_table())
    assert said.index(OURS) < said.index("other")
    assert said.count("turns at once, s") == 1
    assert "a pipe 1" in said
    assert "left out: third: it is in | no registry" in said


def test_what_is_saved_is_what_is_loaded(tmp_path: Path) -> None:
    table = make_table()
    table.save(tmp_path / "results" / "one.json")
    assert Table.load(tmp_path / "results" / "one.json") == table


def test_a_picture_has_a_bar_for_each_value_and_the_longest_for_the_most() -> None:
    line = make_table().lines[0]
    picture = ET.fromstring(draw_bars([line], "a <title>"))  # noqa: S314 - our own
    bars = picture.findall("{http://www.w3.org/2000/svg}rect")[1:]
    assert len(bars) == 2
    theirs, ours = (int(bar.attrib["width"]) for bar in bars)
    assert theirs == 2 * ours


def test_a_page_is_rewritten_between_its_marks_and_nowhere_else(tmp_path: Path) -> None:
    page, table = tmp_path / "page.md", make_table()
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write_all(table, page, tmp_path)
    assert page.read_text() == f"before\n{BEGIN}\n{section(table)}{END}\nafter\n"
    assert "| third | it is in / no registry |" in page.read_text()
    assert (tmp_path / "speed-turns.svg").exists()
    written = page.read_text()
    write_all(table, page, tmp_path)
    assert page.read_text() == written
