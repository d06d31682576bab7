"""Opens the way to a collector. What it needs of other packages is imported only here, when it is wanted."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from clawdforge import __version__
from clawdforge.by_name import load
from clawdforge.core.ports.telemetry import Telemetry
from clawdforge.telemetry.destination import Destination
from clawdforge.wire.errors import Unsupported

CONNECT: Final = "clawdforge.telemetry.collector:connect"
MISSING: Final = (
    "CLAWDFORGE_OTEL_ENDPOINT is set, but {name} is not installed, which it needs; run"
    " `pip install 'clawdforge[otel]'`, or unset it"
)


@asynccontextmanager
async def open_telemetry(
    endpoint: str | None, headers: Mapping[str, str], with_content: bool, node: str
) -> AsyncIterator[Telemetry | None]:
    """None without an endpoint. Unsupported where the extra is not installed. Left within seconds."""
    if endpoint is None:
        yield None
        return
    try:
        connect: Any = load(CONNECT)
    except ModuleNotFoundError as error:
        raise Unsupported(MISSING.format(name=error.name)) from error
    place = Destination(
        endpoint=endpoint, headers=headers, with_content=with_content, version=__version__, node=node
    )
    made = connect(place)
    try:
        yield made
    finally:
        await asyncio.to_thread(made.pump.stop)
