"""Where the server is, asked again whenever a face has lost it."""

from collections.abc import Callable
from typing import TypeAlias

from clawdforge.cli.failures import Failure
from clawdforge.cli.target.options import Target
from clawdforge.client.errors import NoServerKnown

Reach: TypeAlias = Callable[[], tuple[str, str]]


def make_reach(target: Target) -> Reach:
    """A function for the address and the token. It may start a server, as every command does."""

    def reach() -> tuple[str, str]:
        try:
            endpoint = target.reach()
        except Failure as failure:
            raise NoServerKnown(failure.message) from None
        return endpoint.url, endpoint.token

    return reach
