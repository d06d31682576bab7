"""clawdforge behind clawdforge: our driver starts `clawdforge acp` as an agent, and finds what it declares.

The suite of drivers in a short form, since each test starts a server. What needs the agent itself as the
driver's own process (its home, its environment, a preface apart from the prompt) is not for a face.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from clawdforge import scripted
from clawdforge.core.models.agents import AgentSpec
from clawdforge.core.ports import Capability
from clawdforge.drivers.acp.driver import AcpDriver
from clawdforge.drivers.acp.limits import AcpLimits
from clawdforge.drivers.processes.containment import probe
from clawdforge.drivers.processes.spawner import Spawner
from tests.conformance.drivers.bench import DriverBench
from tests.conformance.drivers.deciding import test_what_an_agent_asks_for_is_decided_by_the_session  # noqa: F401
from tests.conformance.drivers.ending import test_a_cancel_in_the_middle_of_a_tool_ends_the_turn  # noqa: F401
from tests.conformance.drivers.returning import test_an_agent_that_was_killed_comes_back  # noqa: F401
from tests.conformance.drivers.talking import test_the_answer_says_why_the_turn_stopped  # noqa: F401

pytestmark = pytest.mark.slow
NOT_OF_FACES = {Capability.CLIENT_FILES, Capability.CLIENT_TERMINALS}


@pytest.fixture
def data() -> Iterator[Path]:
    """A short path, since the server behind the face has its socket deep in there."""
    with tempfile.TemporaryDirectory(prefix="cf", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture
def bench(data: Path) -> DriverBench:
    driver = AcpDriver(Spawner(probe("auto"), data, "boot"), os.environ, AcpLimits())
    inner = f"CLAWDFORGE_AGENT_CLAUDE={' '.join(scripted.command())}"
    settings = ("CLAWDFORGE_SANDBOX=off", "CLAWDFORGE_DEFAULT_AGENT=claude")
    command = ("env", inner, *settings, sys.executable, "-P", "-m", "clawdforge", "acp")
    agent = AgentSpec(name="face", driver="acp", command=command)
    broken = AgentSpec(name="broken", driver="acp", command=(*command, "--no-such-flag"))
    return DriverBench(driver, agent, broken, data, driver.capabilities - NOT_OF_FACES)
