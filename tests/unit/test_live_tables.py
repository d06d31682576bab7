"""The tables of real agents: new rows replace old ones, and each row's run stays known."""

from pathlib import Path

from tests.live.tables import Row, Table, join_levels

TABLE = Table("live", ("one", "two"))
ORDER = ("claude", "codex", "kimi")


def test_rows_that_were_not_tried_again_stay_with_their_run(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- live: begin -->\n<!-- live: end -->\nafter\n")
    TABLE.write([Row("codex", "1", ["yes", "no"]), Row("claude", "2", ["yes", "-"])], ORDER, "Monday", page)
    TABLE.write([Row("codex", "3", ["yes", "yes"])], ORDER, "Tuesday", page)
    TABLE.write([Row("kimi", "4", ["no", "no"])], ORDER, "Tuesday", page)
    assert page.read_text().splitlines() == [
        "before",
        "<!-- live: begin -->",
        "| agent | version | one | two |",
        "|---|---|---|---|",
        "| claude | 2 | yes | - |",
        "| codex | 3 | yes | yes |",
        "| kimi | 4 | no | no |",
        "",
        "Tried on Monday: claude.",
        "Tried on Tuesday: codex, kimi.",
        "<!-- live: end -->",
        "after",
    ]


def test_levels_are_told_apart_where_they_differ() -> None:
    contained = Row("codex", "1", ["yes", "asked"], ["two: no"])
    bare = Row("codex", "1", ["yes", "ran"], ["one: late"])
    joined = join_levels([contained, bare], ("full", "off"))
    assert joined.cells == ["yes", "asked (full), ran (off)"]
    assert joined.failures == ["full: two: no", "off: one: late"]
