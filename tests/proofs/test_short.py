"""Every proof in its short form; `scripts/prove` runs the full ones. `CLAWDFORGE_TEST_SEED` sets the seed."""

import os
from pathlib import Path

import pytest

from proofs.__main__ import PROOFS, run_one
from tests.needs import needs

SEED = int(os.environ.get("CLAWDFORGE_TEST_SEED", "1"))
TRACED = {"syscalls", "power", "faults"}

pytestmark = pytest.mark.slow


def marks(name: str) -> list[pytest.MarkDecorator]:
    """A tracer that joins a hardened server must be root; the power proof traces from the start."""
    if name == "races":
        return [needs("bwrap"), needs("landlock")]
    if name == "simulation":
        return [pytest.mark.timeout(900)]  # a minute of two cores, which others may be using as well
    if name == "nodes":
        return [needs("postgres"), pytest.mark.timeout(600)]  # leases have to pass, one after the other
    if name == "noise":
        return [pytest.mark.timeout(600)]  # half a minute of its own, and every way of it is a crowd
    if name not in TRACED:
        return []
    root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to trace a running server")
    return [needs("strace")] if name == "power" else [needs("strace"), root]


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks(name)) for name in PROOFS])
def test_proof_holds(name: str, tmp_path: Path) -> None:
    run = run_one(name, seed=SEED, size=None, short=True, folder=tmp_path)
    assert run.violations == []
