"""What every driver must do: `from tests.conformance.drivers import *` beside one fixture runs it all.

The fixture is `bench`, a `DriverBench`: a driver, and an agent that understands the scripted agent's
commands. What its capabilities declare must work; what they do not must be refused, or done without, in
the way that the suite says.
"""

from tests.conformance.drivers.deciding import *  # noqa: F403 - a suite is imported whole
from tests.conformance.drivers.ending import *  # noqa: F403
from tests.conformance.drivers.returning import *  # noqa: F403
from tests.conformance.drivers.talking import *  # noqa: F403
