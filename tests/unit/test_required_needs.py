"""What a run for every change must not leave out."""

import re
import sys
from pathlib import Path

from tests.needs import PROBES

RUN = Path(__file__).parents[2] / ".ci" / "run"


def test_whatever_is_installed_with_the_locked_dependencies_is_required() -> None:
    required = re.search(r"^required=\((.*)\)$", RUN.read_text(), re.MULTILINE)
    assert required is not None
    imported = {
        name
        for name, probe in PROBES.items()
        if probe[0] == sys.executable and probe[-1].startswith("import ")
    }
    assert {"langgraph", "langgraph-postgres"} <= imported
    assert imported <= set(required[1].split())
