"""What every driver must do: `from clawdforge.testing.drivers import *` beside one fixture runs it all.

The fixture is `bench`, a `DriverBench`: a driver, and an agent that understands the scripted agent's
commands. What its capabilities declare must work; what they do not must be refused, or done without, in
the way that the suite says.
"""

from clawdforge.testing.drivers.deciding import *  # noqa: F403 - a suite is imported whole
from clawdforge.testing.drivers.ending import *  # noqa: F403
from clawdforge.testing.drivers.returning import *  # noqa: F403
from clawdforge.testing.drivers.talking import *  # noqa: F403
