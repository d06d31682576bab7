"""What the peers share: their packages by `versions.toml`, a free port, and the wait until they answer."""

import hashlib
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx2

from bench.contenders import running
from tests.live.installing import folder, install, search_path
from tests.live.programs import Program

HERE: Final = Path(__file__).parent
INSIDE: Final = HERE / "inside"
"""What runs in an environment of a peer, where nothing of ours is."""
READY_SECS: Final = 90.0


def read_pins(name: str) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((HERE / "versions.toml").read_text())[name]
    return found


def program_of(name: str) -> Program:
    pins = read_pins(name)
    digest = hashlib.sha256(repr(pins).encode()).hexdigest()[:8]  # other pins are another installation
    major, minor = pins.get("python", sys.version_info[:2])
    return Program(
        f"{name}-{digest}",
        pins["program"],
        npm=tuple(pins.get("npm", ())),
        pip=tuple(pins.get("pip", ())),
        python=(major, minor),
        cache="bench",
    )


class Peer:
    """Packages of one name in `versions.toml`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._program = program_of(name)

    def install(self) -> None:
        install(self._program)

    def versions(self) -> Mapping[str, str]:
        """As they are installed, not as they were asked for."""
        if self._program.npm:
            return dict(one.rsplit("@", 1) for one in self._program.npm)
        ask = (
            "import sys\nfrom importlib.metadata import version\nfor one in sys.argv[1:]: print(version(one))"
        )
        shown = read_pins(self.name)["shown"]
        said = subprocess.check_output([self.python, "-c", ask, *shown], text=True)
        return dict(zip(shown, said.split(), strict=True))

    @property
    def python(self) -> str:
        return str(folder(self._program) / "python")

    @property
    def executable(self) -> str:
        return str(folder(self._program) / self._program.program)

    def environment(self, place: Path, **more: str) -> dict[str, str]:
        """A home of its own, and nothing of whoever measures."""
        return {"HOME": str(place), "PATH": search_path(self._program), "PYTHONPATH": str(INSIDE), **more}

    @contextmanager
    def serve(
        self, command: list[str], place: Path, url: str, health: str, env: Mapping[str, str]
    ) -> Iterator[int]:
        """Its process, from its first answer on."""
        with (
            httpx2.Client(base_url=url, timeout=5) as http,
            running(command, place, env, lambda: answers(http, health), READY_SECS) as pid,
        ):
            yield pid


def answers(http: httpx2.Client, path: str) -> bool:
    try:
        return http.get(path).status_code == 200
    except httpx2.TransportError:
        return False
