"""A long paste is one word in the line and whole where it is sent; a resize finds the rows again."""

from pathlib import Path

import pytest

from clawdforge.cli.repl.folds import MOST_CHARS, MOST_LINES, Folds, WholeFileHistory, WholeMemoryHistory
from clawdforge.cli.repl.resize import count_rows, is_reflowing


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_only_what_is_long_is_folded(more: int) -> None:
    folds = Folds()
    lines = "\n".join("x" * (MOST_LINES + more))
    assert folds.fold(lines) == (lines if more <= 0 else f"[pasted #1: {MOST_LINES + 1} lines]")
    chars = "x" * (MOST_CHARS + more)
    number = 2 if more > 0 else 1
    assert folds.fold(chars) == (chars if more <= 0 else f"[pasted #{number}: {MOST_CHARS + 1} characters]")


def test_what_is_sent_is_whole() -> None:
    folds = Folds()
    first, second = "a\r\n" * 20, "[pasted #1: 21 lines]" + "b\r" * 30
    line = f"look: {folds.fold(first)} and {folds.fold(second)}, [pasted #9: 3 lines], [pasted #"
    assert line == "look: [pasted #1: 21 lines] and [pasted #2: 31 lines], [pasted #9: 3 lines], [pasted #"
    whole = folds.unfold(line)
    first, second = first.replace("\r", ""), second.replace("\r", "\n")
    assert whole == f"look: {first} and {second}, [pasted #9: 3 lines], [pasted #"


def test_the_history_has_what_was_pasted(tmp_path: Path) -> None:
    folds = Folds()
    word = folds.fold("line\n" * 20)
    in_file, in_memory = WholeFileHistory(str(tmp_path / "h"), folds), WholeMemoryHistory(folds)
    for history in (in_file, in_memory):
        history.append_string(f"read {word}")
    assert list(WholeFileHistory(str(tmp_path / "h"), Folds()).load_history_strings()) == [
        "read " + "line\n" * 20
    ]
    assert list(in_memory.get_strings()) == ["read " + "line\n" * 20]


def test_rows_that_a_narrower_terminal_breaks_are_counted() -> None:
    assert count_rows([], 10) == 0
    assert count_rows([0, 9, 10, 11, 20, 21], 10) == 1 + 1 + 1 + 2 + 2 + 3
    assert is_reflowing({"TERM": "xterm-256color"})
    for env in ({"TERM": "linux"}, {"XTERM_VERSION": "XTerm(390)"}, {"STY": "1.pts"}):
        assert not is_reflowing(env)
