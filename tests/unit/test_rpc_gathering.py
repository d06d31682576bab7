"""Gathering in the connection: what an agent says may be taken together, and what is long never is."""

from pathlib import Path

from clawdforge.jsonrpc.ndjson import SHORT_BYTES
from clawdforge.wire.base import Json
from tests.unit.rpc_peer import Heard, talk, until


class Taker:
    """Gathers whatever it is offered, and notes how long that was."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def gather_line(self, line: bytes | bytearray) -> bool:  # noqa: ARG002 - part of the port
        return False

    def gather(self, message: Json, size: int) -> bool:  # noqa: ARG002 - part of the port
        self.sizes.append(size)
        return True

    async def hand_over(self) -> None:
        pass


async def test_what_is_long_is_never_gathered(tmp_path: Path) -> None:
    """To compare two lines of megabytes would keep the loop from everybody else."""
    says = "for size in (10, 5_000, 3_000_000):\n    send(method='session/update', params={'n': 'x' * size})"
    body = tmp_path / "body.py"
    body.write_text(says)
    taker, heard = Taker(), Heard()
    async with talk(str(body), heard, 1 << 23, gatherer=taker) as (connection, _):
        await connection.notify("go", {})
        await until(lambda: len(heard.sizes) == 2)
    assert len(taker.sizes) == 1
    assert taker.sizes[0] <= SHORT_BYTES < min(heard.sizes)
