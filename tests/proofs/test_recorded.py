"""What is recorded of the proofs was found on a commit that everybody can look at."""

import json
import subprocess

import pytest

from proofs.kit.report import RESULTS
from proofs.kit.server import ROOT


def git(*words: str) -> str | None:
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout


def test_each_row_names_a_commit_of_this_history() -> None:
    if git("rev-parse", "--is-shallow-repository") != "false\n":
        pytest.skip("there is no git, or not the whole history")
    history = git("log", "--format=%H")
    assert history is not None
    commits = history.split()
    rows = {path.stem: json.loads(path.read_text("utf-8"))["commit"] for path in RESULTS.glob("*.json")}
    lost = {name: row for name, row in rows.items() if not any(commit.startswith(row) for commit in commits)}
    assert rows
    assert not lost, f"no commit of this history: {lost}"
