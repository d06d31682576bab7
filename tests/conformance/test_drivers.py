"""Every driver does what it declares, over real processes."""

import os
import sys
from pathlib import Path

import pytest

from clawdforge import scripted
from clawdforge.core.models.agents import AgentSpec
from clawdforge.core.ports import Capability
from clawdforge.drivers.acp.driver import AcpDriver
from clawdforge.drivers.acp.limits import AcpLimits
from clawdforge.drivers.acpx.driver import AcpxDriver
from clawdforge.drivers.processes.containment import probe
from clawdforge.drivers.processes.spawner import Spawner
from tests.conformance.drivers import *  # noqa: F403
from tests.conformance.drivers.bench import DriverBench
from tests.needs import ACPX, needs

KINDS = [
    "acp",
    pytest.param("acpx", marks=[needs("acpx"), pytest.mark.long]),
    pytest.param("graph", marks=needs("langgraph")),
]
TOP = Path(__file__).parents[2]
HOST = ("env", f"PYTHONPATH={TOP}", sys.executable, "-P", "-m", "clawdforge.graphs")
GRAPH = (*HOST, "tests.support.graphs.scripted:graph")
NOT_OF_GRAPHS = {Capability.PLAN_MODE, Capability.CLIENT_FILES, Capability.CLIENT_TERMINALS}


@pytest.fixture(params=KINDS)
def bench(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DriverBench:
    data = tmp_path / "data"
    data.mkdir()
    spawner = Spawner(probe("auto"), data, "boot")
    kind = str(request.param)
    driver: AcpDriver | AcpxDriver = AcpDriver(spawner, os.environ, AcpLimits())
    if kind == "acpx":
        monkeypatch.setenv("PATH", f"{ACPX}:{os.environ['PATH']}")
        driver = AcpxDriver(spawner, os.environ, AcpLimits())
    if kind == "graph":
        agent = AgentSpec(name="graph", driver="acp", command=GRAPH)
        broken = AgentSpec(name="broken", driver="acp", command=(*GRAPH[:-1], "clawdforge.nothing:graph"))
        return DriverBench(driver, agent, broken, data, driver.capabilities - NOT_OF_GRAPHS)
    agent = AgentSpec(name="scripted", driver=kind, command=tuple(scripted.command()))
    broken = AgentSpec(name="broken", driver=kind, command=tuple(scripted.command("--exit-at-start")))
    return DriverBench(driver, agent, broken, data, driver.capabilities)
