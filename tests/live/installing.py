"""Puts real programs into a cache folder: npm packages beside a Node of our own, Python ones in venvs.

What was killed half-way is never taken for done, and two that install at once wait for each other.
"""

import contextlib
import fcntl
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.live.programs import ACPX, CHART, CLIENTS, LLM, MCP, MOTO, PROGRAMS, PYRIGHT, Program

CACHE: Final = Path(__file__).parent.parent.parent / ".cache" / "live"
NODE: Final = "node@24"
PYENV: Final = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
SECONDS: Final = 600
WHOLE: Final = "whole"
"""A file in a venv that has got all of its packages; a venv cannot be renamed as a folder of npm's can."""
AUTHORITIES: Final = Path("/etc/ssl/certs/ca-certificates.crt")


class Unavailable(Exception):
    """It cannot be installed here; the reason in words."""


def folder(program: Program) -> Path:
    """Where its executables are, or will be."""
    if program.npm:
        return _npm_folder(program) / "node_modules" / ".bin"
    return _venv(program) / "bin" if program.pip else Path(sys.executable).parent


def search_path(*programs: Program) -> str:
    """PATH for a server that is to find the programs, what they need, and their Node."""
    all_of = [one for program in programs for one in (program, *program.beside)]
    folders = [*(folder(one) for one in all_of), node_folder()]
    return os.pathsep.join([*map(str, folders), os.environ.get("PATH", os.defpath)])


def node_folder() -> Path:
    return CACHE / "npm" / "node" / "node_modules" / ".bin"


def present(program: Program) -> bool:
    if program.pip and not (_venv(program) / WHOLE).exists():
        return False
    return shutil.which(program.program, path=str(folder(program))) is not None


def install(program: Program) -> None:
    """Raises Unavailable. What is there already stays as it is."""
    for tool in program.beside:
        install(tool)
    if program.npm:
        with _alone("node"):
            if shutil.which("node", path=str(node_folder())) is None:
                _npm(CACHE / "npm" / "node", (NODE,))
        with _alone(program.place or program.name):
            if not present(program):
                _npm(_npm_folder(program), program.npm, program)
    elif program.pip:
        with _alone(program.name):
            if not present(program):
                _pip(program)
    if not present(program):
        raise Unavailable(f"its packages bring no program {program.program} for {platform.machine()}")


def main() -> int:
    """`python3 -m tests.live.installing AGENT …`: only install; for a machine that runs the tests."""
    for program in (ACPX, CHART, CLIENTS, LLM, MCP, MOTO, PYRIGHT, *PROGRAMS):
        if program.name in sys.argv[1:]:
            try:
                install(program)
            except (Unavailable, OSError, subprocess.TimeoutExpired) as reason:
                sys.stderr.write(f"{program.name} is left out: {reason}\n")
                return 1
    return 0


@contextlib.contextmanager
def _alone(name: str) -> Iterator[None]:
    """Whoever else installs the same waits; a process that is killed lets go."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _npm(place: Path, packages: tuple[str, ...], program: Program | None = None) -> None:
    """Into a folder of another name, which gets its own when everything is there."""
    if shutil.which("npm") is None:
        raise Unavailable("npm is not installed")
    unfinished = place.with_name(f"{place.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    (unfinished / "package.json").write_text('{"private": true}\n')
    # With our own Node in front: npm takes the newest packages that the Node it runs on is good for.
    env = {**os.environ, "PATH": os.pathsep.join([str(node_folder()), os.environ.get("PATH", os.defpath)])}
    if AUTHORITIES.exists():  # Node knows only the authorities that it brought along, not the machine's
        env.setdefault("NODE_EXTRA_CA_CERTS", str(AUTHORITIES))
    _run(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", *packages], unfinished, env)
    if program is not None:
        _link(program, unfinished / "node_modules")
    shutil.rmtree(place, ignore_errors=True)
    unfinished.rename(place)


def _link(program: Program, modules: Path) -> None:
    if program.binary is not None:
        for found in modules.glob(program.binary):
            if found.is_file():
                (modules / ".bin" / program.program).symlink_to(Path("..") / found.relative_to(modules))
                return


def _pip(program: Program) -> None:
    python = _python(program.python)
    _run([python, "-m", "venv", "--clear", str(_venv(program))], CACHE.parent)
    pip = [str(_venv(program) / "bin" / "python"), "-m", "pip", "install", "--quiet", *program.pip]
    _run([*pip, "--disable-pip-version-check"], CACHE.parent)
    (_venv(program) / WHOLE).touch()


def _python(wanted: tuple[int, int]) -> str:
    if sys.version_info >= wanted:
        return sys.executable
    for minor in range(wanted[1], wanted[1] + 4):
        name = f"python{wanted[0]}.{minor}"
        managed = sorted(PYENV.glob(f"versions/{wanted[0]}.{minor}.*/bin/{name}"))
        for found in (name, *map(str, managed)):
            if (
                shutil.which(found)
                and subprocess.run([found, "-c", ""], check=False, capture_output=True).returncode == 0
            ):
                return found
    raise Unavailable(f"it needs Python {wanted[0]}.{wanted[1]} or newer")


def _venv(program: Program) -> Path:
    return _cache(program) / "py" / program.name


def _npm_folder(program: Program) -> Path:
    return _cache(program) / "npm" / (program.place or program.name)


def _cache(program: Program) -> Path:
    return CACHE.with_name(program.cache) if program.cache else CACHE


def _run(command: list[str], place: Path, env: Mapping[str, str] | None = None) -> None:
    place.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        command,
        cwd=place,
        env=env,
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
