"""Loaded by schemathesis: which answers are failures of the server."""

from typing import Any

import schemathesis
from schemathesis import Case, CheckContext, Response

OUTSIDE = frozenset({501, 502, 503, 504})
"""Something that the server depends on failed: the agent, the disk, time. These are documented."""


@schemathesis.check
def no_failure_of_our_own(_context: CheckContext, response: Response, _case: Case[Any]) -> None:
    status = response.status_code
    assert status < 500 or status in OUTSIDE, f"the server answered {status}"
