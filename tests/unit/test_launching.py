"""The launcher runs from its compiled form, and never from one that was made of another source."""

import os
import py_compile
import subprocess
import sys
from pathlib import Path

import pytest

from clawdforge.drivers.processes.launching import SOURCE, find_command, find_compiled


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text("print('first')\n")
    beside = path.parent / "__pycache__" / f"program.{sys.implementation.cache_tag}.pyc"
    py_compile.compile(str(path), cfile=str(beside), doraise=True)
    return path


def test_what_an_import_left_behind_is_run(source: Path) -> None:
    found = find_compiled(source)
    assert found.suffix == ".pyc"
    assert subprocess.check_output([sys.executable, "-I", "-S", str(found)]) == b"first\n"


def test_a_form_that_is_kept_elsewhere_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent may be able to write there, and would run with the server's rights."""
    source, elsewhere = tmp_path / "own" / "program.py", tmp_path / "elsewhere"
    source.parent.mkdir()
    source.write_text("print('first')\n")
    monkeypatch.setattr(sys, "pycache_prefix", str(elsewhere))
    planted = Path(py_compile.compile(str(source), doraise=True) or "")
    assert planted.is_relative_to(elsewhere)
    assert find_compiled(source) == source


def test_the_source_is_run_where_nothing_was_compiled(tmp_path: Path) -> None:
    source = tmp_path / "program.py"
    source.write_text("print('first')\n")
    assert find_compiled(source) == source


@pytest.mark.parametrize("text", ["print('other')\n", "print('something longer')\n"])
def test_an_older_form_is_not_run(source: Path, text: str) -> None:
    made = source.stat().st_mtime
    source.write_text(text)
    os.utime(source, (made + 2, made + 2) if len(text) == len("print('first')\n") else (made, made))
    assert find_compiled(source) == source


def test_a_form_of_another_python_or_a_broken_one_is_not_run(source: Path) -> None:
    compiled = find_compiled(source)
    whole = compiled.read_bytes()
    for damaged in (b"\x00" * 4 + whole[4:], whole[:9], b""):
        compiled.write_bytes(damaged)
        assert find_compiled(source) == source


def test_the_launcher_is_the_imported_file() -> None:
    assert SOURCE.name == "launcher.py"
    assert find_compiled(SOURCE).name.startswith("launcher.")


def test_a_form_that_is_taken_away_beside_a_running_server_is_done_without(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clawdforge.drivers.processes.launching.SOURCE", source)
    assert find_command()[-1].endswith(".pyc")
    find_compiled(source).unlink()
    assert find_command()[-1] == str(source)
