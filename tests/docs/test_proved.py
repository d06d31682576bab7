"""What the README says of the proofs is what they found when they were last run in full."""

import json
import re
from typing import Any

import pytest

from proofs.__main__ import PROOFS
from proofs.kit.server import ROOT

README = (ROOT / "README.md").read_text("utf-8").partition("## Proved")[2].partition("\n## ")[0]


def found(proof: str, figure: str) -> Any:
    return json.loads((ROOT / "proofs" / "results" / f"{proof}.json").read_text("utf-8"))["figures"][figure]


@pytest.mark.parametrize(
    ("proof", "figure", "words"),
    [
        ("kills", "kills", "- {:,} "),
        ("kills", "acknowledged_prompts", "{:,} acknowledged prompts"),
        ("syscalls", "points", "{:,} kills exactly at"),
        ("power", "states", "{:,} disks"),
        ("races", "rounds", "{:,} rounds"),
        ("duplicates", "prompts", "{:,} prompts through a proxy"),
        ("simulation", "schedules", "{:,} schedules"),
        ("duplicates", "turns", "{:,} turns"),
    ],
)
def test_the_readme_says_what_the_proofs_found(proof: str, figure: str, words: str) -> None:
    assert words.format(found(proof, figure)) in README


def test_the_readme_counts_the_proofs() -> None:
    assert re.search(rf"\[{len(PROOFS)} proofs\]", README)


def test_the_share_of_kills_in_a_start_is_about_a_fifth() -> None:
    assert 0.15 < found("kills", "kills_during_start_or_recovery") / found("kills", "kills") < 0.25
