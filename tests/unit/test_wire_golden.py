"""Every shape on the wire is pinned by a file; `scripts/golden` rewrites them when one is meant to change."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from clawdforge.drivers.acp.updates import UPDATE_TYPES, type_of
from clawdforge.http.dialects.mcp import tools
from clawdforge.wire.event import AGENT_TYPES, EventType
from tests.wire_samples import OWN, UPDATES, all_shapes, models, received, unpublished

FOLDER = Path(__file__).parent.parent / "golden" / "wire"
UPDATE = os.environ.get("CLAWDFORGE_TEST_UPDATE_GOLDEN") == "1"
SHAPES = all_shapes()


def rendered(shape: Any) -> str:
    """As text, keys in the order of the wire, so that the order is pinned too."""
    return json.dumps(shape, indent=2, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("name", SHAPES)
def test_shape_is_as_it_was(name: str) -> None:
    path = FOLDER / f"{name}.json"
    if UPDATE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rendered(SHAPES[name]), encoding="utf-8")
    assert path.is_file(), "no golden file; see what scripts/golden would write"
    assert rendered(SHAPES[name]) == path.read_text(encoding="utf-8")


def test_no_golden_file_is_left_over() -> None:
    known = set(SHAPES)
    for path in FOLDER.glob("*.json"):
        if UPDATE and path.stem not in known:
            path.unlink()
        else:
            assert path.stem in known


TOOLS = {tool.shape.__name__ for tool in tools.TOOLS.values()}


def test_every_model_is_pinned_once() -> None:
    """By its file here, or by the description of the routes; two models of one name could hide each other."""
    names = [kind.__name__ for kind in models()]
    assert len(names) == len(set(names))
    assert {kind.__name__ for kind in unpublished()} == {
        *("Reply", "Record", "Request", "StrictRequest"),  # what all bodies are made from
        "TurnSummary",  # a turn's answer without its events, which follow as ready bytes
        *TOOLS,  # what each tool takes, which `tools/list` tells
    }


def test_every_type_has_a_sample() -> None:
    from_agents = {type_of(message) for _, message in received()}
    assert from_agents == AGENT_TYPES
    assert set(OWN) == set(EventType) - AGENT_TYPES
    assert set(UPDATE_TYPES) <= set(UPDATES)
