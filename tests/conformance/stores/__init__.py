"""What every store must do: `from tests.conformance.stores import *` beside two fixtures runs it all.

The fixtures are `store` (a fresh one) and `reopen` (closes it and opens the same data again).
"""

from tests.conformance.stores.apart import *  # noqa: F403 - a suite is imported whole
from tests.conformance.stores.blobs import *  # noqa: F403
from tests.conformance.stores.folders import *  # noqa: F403
from tests.conformance.stores.history import *  # noqa: F403
from tests.conformance.stores.jobs import *  # noqa: F403
from tests.conformance.stores.leases import *  # noqa: F403
from tests.conformance.stores.lists import *  # noqa: F403
from tests.conformance.stores.log import *  # noqa: F403
from tests.conformance.stores.packing import *  # noqa: F403
from tests.conformance.stores.timetables import *  # noqa: F403
