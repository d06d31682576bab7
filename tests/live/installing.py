"""Puts real programs into a cache folder: npm packages beside a Node of our own, Python ones in venvs."""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.live.programs import PROGRAMS, Program

CACHE: Final = Path(__file__).parent.parent.parent / ".cache" / "live"
NODE: Final = "node@24"
SECONDS: Final = 600


class Unavailable(Exception):
    """It cannot be installed here; the reason in words."""


def folder(program: Program) -> Path:
    """Where its executables are, or will be."""
    return CACHE / "npm" / program.name / "node_modules" / ".bin" if program.npm else _venv(program) / "bin"


def search_path(program: Program) -> str:
    """PATH for a server that is to find the program, and its Node."""
    return os.pathsep.join([str(folder(program)), str(node_folder()), os.environ.get("PATH", os.defpath)])


def node_folder() -> Path:
    return CACHE / "npm" / "node" / "node_modules" / ".bin"


def present(program: Program) -> bool:
    return shutil.which(program.program, path=str(folder(program))) is not None


def install(program: Program) -> None:
    """Raises Unavailable. What is there already stays as it is."""
    if program.npm:
        if shutil.which("node", path=str(node_folder())) is None:
            _npm("node", (NODE,))
        if not present(program):
            _npm(program.name, program.npm)
            _link(program)
    elif not present(program):
        _pip(program)
    if not present(program):
        raise Unavailable(f"its packages bring no program {program.program} for {platform.machine()}")


def main() -> int:
    """`python3 -m tests.live.installing AGENT …`: only install; for a machine that runs the tests."""
    for program in PROGRAMS:
        if program.name in sys.argv[1:]:
            try:
                install(program)
            except (Unavailable, OSError, subprocess.TimeoutExpired) as reason:
                sys.stderr.write(f"{program.name} is left out: {reason}\n")
                return 1
    return 0


def _npm(name: str, packages: tuple[str, ...]) -> None:
    if shutil.which("npm") is None:
        raise Unavailable("npm is not installed")
    place = CACHE / "npm" / name
    place.mkdir(parents=True, exist_ok=True)
    (place / "package.json").write_text('{"private": true}\n')
    _run(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", *packages], place)


def _link(program: Program) -> None:
    if program.binary is not None:
        for found in folder(program).parent.glob(program.binary):
            if found.is_file():
                (folder(program) / program.program).symlink_to(found)
                return


def _pip(program: Program) -> None:
    python = _python(program.python)
    _run([python, "-m", "venv", "--clear", str(_venv(program))], CACHE.parent)
    pip = [str(_venv(program) / "bin" / "python"), "-m", "pip", "install", "--quiet", *program.pip]
    _run([*pip, "--disable-pip-version-check"], CACHE.parent)


def _python(wanted: tuple[int, int]) -> str:
    if sys.version_info >= wanted:
        return sys.executable
    for minor in range(wanted[1], wanted[1] + 4):
        name = f"python{wanted[0]}.{minor}"
        if (
            shutil.which(name)
            and subprocess.run([name, "-c", ""], check=False, capture_output=True).returncode == 0
        ):
            return name
    raise Unavailable(f"it needs Python {wanted[0]}.{wanted[1]} or newer")


def _venv(program: Program) -> Path:
    return CACHE / "py" / program.name


def _run(command: list[str], place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        command,
        cwd=place,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        said = [line for line in (done.stderr or done.stdout).splitlines() if "error" in line.lower()]
        raise Unavailable((said or ["the installer failed"])[0].strip()[:200])


if __name__ == "__main__":
    sys.exit(main())
