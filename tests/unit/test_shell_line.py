"""What a person runs with `!` in the conversation is shown, bounded, and ended with all it started."""

import asyncio
from pathlib import Path

import pytest

from clawdforge.cli.output.lines import wrap
from clawdforge.cli.repl.shell import MOST_BYTES, run_shell
from tests.api.harness import until


async def test_output_errors_and_the_exit_code_are_shown(tmp_path: Path) -> None:
    assert await run_shell("pwd; echo oops >&2; cat; exit 3", tmp_path) == (3, f"{tmp_path}\noops\n")


@pytest.mark.parametrize("more", [-1, 0, 1])
async def test_the_end_of_a_flood_is_kept(tmp_path: Path, more: int) -> None:
    count = MOST_BYTES + more
    code, said = await run_shell(f"head -c {count} /dev/zero | tr '\\0' x", tmp_path)
    head = "… 1 bytes before this\n" if more > 0 else ""
    assert (code, said) == (0, head + "x" * min(count, MOST_BYTES))


@pytest.mark.parametrize("then", ["wait", "echo $$ > shell", "exec >&-; wait"])
async def test_whoever_stops_it_ends_all_of_it(tmp_path: Path, then: str) -> None:
    """Also what runs on after the shell has ended, or has closed its output."""
    running = asyncio.create_task(run_shell(f"sleep 600 & echo $! > pid; {then}", tmp_path))
    if then == "echo $$ > shell":
        shell = await asyncio.to_thread(until, lambda: _read(tmp_path / "shell"), "the shell")
        await asyncio.to_thread(until, lambda: _has_ended(int(shell)), "the end of the shell")
    pid = await asyncio.to_thread(until, lambda: _read(tmp_path / "pid"), "the child")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.to_thread(until, lambda: _has_ended(int(pid)), "the end of the child")


@pytest.mark.parametrize("passes", range(6))
async def test_whoever_stops_it_while_it_starts_ends_all_of_it(tmp_path: Path, passes: int) -> None:
    """The shell is at work before asyncio has told that it runs: the loop stands still until it is."""
    running = asyncio.create_task(run_shell("sleep 600 & echo $! > pid; wait", tmp_path))
    for _ in range(passes):
        await asyncio.sleep(0)
    if passes > 1:
        until(lambda: _read(tmp_path / "pid"), "the child")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    if pid := _read(tmp_path / "pid"):
        await asyncio.to_thread(until, lambda: _has_ended(int(pid)), "the end of the child")


def _read(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""


def _has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"
    except OSError:
        return True


@pytest.mark.parametrize(
    ("text", "width", "rows"),
    [
        ("the quick brown fox", 11, ["the quick", "brown fox"]),
        ("the quick brown fox", 10, ["the quick", "brown fox"]),
        ("the quick brown fox", 9, ["the", "quick", "brown", "fox"]),
        ("abcdefgh", 5, ["abcd", "efgh"]),
        ("a bcdefghij", 5, ["a", "bcde", "fghi", "j"]),
        ("  margin and words", 9, ["  margin", "and", "words"]),
        ("漢字漢字 漢字", 9, ["漢字漢字", "漢字"]),
        ("", 5, [""]),
        ("word ", 80, ["word "]),
    ],
)
def test_words_are_kept_whole_while_they_stream(text: str, width: int, rows: list[str]) -> None:
    assert wrap(text, width) == rows
