"""What every store must do: `from clawdforge.testing.stores import *` beside two fixtures runs it all.

The fixtures are `store` (a fresh one) and `reopen` (closes it and opens the same data again).
"""

from clawdforge.testing.stores.apart import *  # noqa: F403 - a suite is imported whole
from clawdforge.testing.stores.history import *  # noqa: F403
from clawdforge.testing.stores.lists import *  # noqa: F403
from clawdforge.testing.stores.log import *  # noqa: F403
