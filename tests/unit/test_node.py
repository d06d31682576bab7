"""The doctor tells of Node.js where an agent that is here needs it, and of nothing otherwise."""

from pathlib import Path

import pytest

from clawdforge.core.models.agents import AgentSpec
from clawdforge.drivers.registry.registry import Registry
from clawdforge.upkeep import doctor

SPECS = Registry({}, {}, "demo").specs()
BY_NPM, BY_PIP = SPECS["claude"], SPECS["vibe"]


def say(specs: list[AgentSpec]) -> list[tuple[str, str]]:
    return [(found.level, found.text) for found in doctor._check_node(specs)]


def put_node(folder: Path, monkeypatch: pytest.MonkeyPatch, version: str | None) -> None:
    monkeypatch.setenv("PATH", str(folder))
    if version is not None:
        (folder / "node").write_text(f"#!/bin/sh\necho {version}\n")
        (folder / "node").chmod(0o755)


@pytest.mark.parametrize(
    ("version", "level", "words"),
    [
        ("v22.12.9", "warn", "claude needs Node.js 22.13 or newer, and this is 22.12"),
        ("v22.13.0", "ok", "22.13, for claude"),
        ("v24.1.0", "ok", "24.1, for claude"),
        ("nonsense", "warn", "which is not installed"),
        (None, "warn", "which is not installed"),
    ],
)
def test_what_the_doctor_says_of_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None, level: str, words: str
) -> None:
    put_node(tmp_path, monkeypatch, version)
    [(found, text)] = say([BY_NPM, BY_PIP])
    assert (found, words in text) == (level, True), text


def test_nobody_is_told_of_node_who_needs_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_node(tmp_path, monkeypatch, None)
    assert say([BY_PIP, SPECS["demo"]]) == []
