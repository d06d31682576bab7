"""Loaded by schemathesis: which answers are failures of the server."""

from typing import Any

import schemathesis
from schemathesis import Case, CheckContext, HookContext, Response

OUTSIDE = frozenset({501, 502, 503, 504})
"""Something that the server depends on failed: the agent, the disk, time. These are documented."""

LONGEST = 5000
"""Characters of a query, which may take twelve each in the address."""


@schemathesis.hook
def filter_case(_context: HookContext, case: Case[Any]) -> bool:
    """Without addresses of 64 KiB: the HTTP parser refuses those in its own words, and asks no route."""
    return len(str(case.query)) + len(str(case.path_parameters)) < LONGEST


@schemathesis.check
def no_failure_of_our_own(_context: CheckContext, response: Response, _case: Case[Any]) -> None:
    status = response.status_code
    assert status < 500 or status in OUTSIDE, f"the server answered {status}"
