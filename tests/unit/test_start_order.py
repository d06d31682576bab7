"""What a server finds out of its machine before it is ready, in the order in which that can be found out."""

from pathlib import Path
from typing import Any

import pytest

from clawdforge import machine
from clawdforge.parts import open_parts
from tests.unit.supervised import make_settings


async def test_nothing_is_started_while_the_server_moves_its_own_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Version 2 of control groups wants it to be the only process there. Else agents would have no limits."""
    order: list[str] = []

    def noting(name: str) -> None:
        find = getattr(machine, name)

        def noted(*args: Any, **more: Any) -> Any:
            order.append(f"{name} begins")
            try:
                return find(*args, **more)
            finally:
                order.append(f"{name} ends")

        monkeypatch.setattr(machine, name, noted)

    noting("find_cgroups")
    noting("find_containment")
    async with open_parts(make_settings(tmp_path)):
        pass
    assert order == [
        "find_cgroups begins",
        "find_cgroups ends",
        "find_containment begins",
        "find_containment ends",
    ]
