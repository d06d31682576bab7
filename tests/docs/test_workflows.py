"""Workflows of the public host and hooks before a commit: they follow their formats and call what exists."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped] # no stubs, and two calls

TOP: Final = Path(__file__).parents[2]
WORKFLOWS: Final = sorted((TOP / ".github" / "workflows").glob("*.yml"))
HOOKS: Final = TOP / ".pre-commit-config.yaml"


def schema_errors(workflow: Path) -> str:
    check = Path(sys.executable).parent / "check-jsonschema"
    command: list[str | Path] = [check, "--builtin-schema", "vendor.github-workflows", workflow]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from strings(part)


def read(path: Path) -> dict[str, Any]:
    content = yaml.safe_load(path.read_text())
    assert isinstance(content, dict)
    return content


def test_there_are_workflows() -> None:
    assert {path.name for path in WORKFLOWS} == {"ci.yml", "nightly.yml"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_follows_the_schema(path: Path, tmp_path: Path) -> None:
    assert schema_errors(path) == ""
    planted = tmp_path / path.name
    planted.write_text(path.read_text().replace("runs-on:", "run-on:"))
    assert "run-on" in schema_errors(planted)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_calls_only_commands_that_exist(path: Path) -> None:
    called = {
        name
        for text in strings(read(path)["jobs"])
        for name in re.findall(r"\./((?:scripts|\.ci)/\w+)", text)
    }
    assert called
    missing = {name for name in called if not os.access(TOP / name, os.X_OK)}
    assert missing == set()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_their_major_version(path: Path) -> None:
    steps = [step for job in read(path)["jobs"].values() for step in job["steps"]]
    used = [step["uses"] for step in steps if "uses" in step]
    assert used
    assert [name for name in used if not re.fullmatch(r"actions/[\w-]+@v\d+", name)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_only_read(path: Path) -> None:
    assert read(path)["permissions"] == {"contents": "read"}


def test_hooks_run_the_tools_of_the_environment() -> None:
    (repository,) = read(HOOKS)["repos"]
    assert repository["repo"] == "local"
    for hook in repository["hooks"]:
        program, *words = shlex.split(hook["entry"])
        assert program.startswith(".venv/bin/"), hook["id"]
        assert (Path(sys.executable).parent / Path(program).name).exists(), f"{hook['id']}: no {program}"
        paths = [word for word in words if word.startswith(("tests/", "scripts/"))]
        assert [word for word in paths if not (TOP / word).exists()] == []
        assert hook["language"] == "system"
