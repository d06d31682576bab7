"""Builds the wheel, looks at what it ships, and has it answer in an empty environment: `./scripts/wheel`."""  # noqa: INP001 - a script, not a package

import ast
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "clawdforge"
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
NOT_SHIPPED = frozenset({"pytest", "hypothesis", "tests", "bench", "proofs"})
"""What a module of the wheel may not import: an installed server does not have it."""

NOT_TRIED = 75  # what sysexits.h calls a failure that may pass
STOP_SECS = 20.0


class Wrong(Exception):
    """The wheel is not fit to be published; the words say why."""


class RegistryUnreachable(Exception):
    """Nothing can be installed here, so nothing can be said about the wheel."""


def build(folder: Path) -> Path:
    """The wheel, made by the build backend of this environment, so that no network is needed."""
    with tempfile.TemporaryDirectory() as made:
        command = ("wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", made, str(ROOT))
        subprocess.run([*PIP, *command], check=True)
        (wheel,) = Path(made).glob("clawdforge-*.whl")
        folder.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(wheel, folder))


def complaints(wheel: Path) -> Iterator[str]:
    """What the wheel ships but should not, and what it should ship but does not."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        for name in sorted(names):
            top = name.split("/")[0]
            if top != "clawdforge" and not top.endswith(".dist-info"):
                yield f"{name} is no part of the package"
            if name.endswith(".py"):
                for package in sorted(imported_packages(archive.read(name)) & NOT_SHIPPED):
                    yield f"{name} imports {package}, which an installed server does not have"
    for path in sorted(PACKAGE.rglob("*")):
        name = path.relative_to(PACKAGE.parent).as_posix()
        if path.is_file() and "__pycache__" not in path.parts and name not in names:
            yield f"{name} is missing"


def imported_packages(source: bytes) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found


def install(wheel: Path, venv: Path) -> Path:
    """An empty environment with the locked dependencies and the wheel; the folder of its commands."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    into = (*PIP, "--python", str(venv / "bin" / "python"), "install", "--no-compile", "--no-deps")
    locked = ("--require-hashes", "--requirement", str(ROOT / "requirements.lock"))
    if subprocess.run([*into, *locked], check=False).returncode:
        if is_registry_reachable():
            raise Wrong("the locked dependencies cannot be installed; pip's own words are above")
        raise RegistryUnreachable
    subprocess.run([*into, str(wheel)], check=True)
    return venv / "bin"


def is_registry_reachable() -> bool:
    probe = ("download", "--no-deps", "--no-cache-dir", "--retries", "0", "--timeout", "5", "click")
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run([*PIP, *probe, "--dest", folder], check=False).returncode == 0


def try_out(commands: Path, place: Path) -> None:
    """What a newcomer does first: one prompt to the built-in agent. No source tree is near."""
    data, project = place / "data", place / "project"
    project.mkdir()
    env = {
        name: value for name, value in os.environ.items() if not name.startswith(("CLAWDFORGE_", "PYTHON"))
    }
    env |= {"HOME": str(place), "CLAWDFORGE_DATA_DIR": str(data)}
    with background_server_ended(data):
        answer = subprocess.run(
            [commands / "clawdforge", "-p", "Say hello."],
            cwd=project,
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    if answer.returncode != 0 or "hello" not in answer.stdout.lower():
        raise Wrong(f"`clawdforge -p` ended with {answer.returncode}: {answer.stdout}{answer.stderr}")
    print(answer.stdout.strip())


@contextmanager
def background_server_ended(data: Path) -> Iterator[None]:
    """The command leaves a server that would wait for ten idle minutes: end it, and wait until it is gone."""
    try:
        yield
    finally:
        lock = data / "server.lock"
        if lock.exists():
            pid = int(json.loads(lock.read_text())["pid"])
            os.kill(pid, signal.SIGTERM)
            end = time.monotonic() + STOP_SECS
            while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
                time.sleep(0.05)


def main(folder: Path) -> None:
    wheel = build(folder)
    found = list(complaints(wheel))
    if found:
        raise Wrong("\n".join(found))
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        try_out(install(wheel, place / "venv"), place)
    print(f"{wheel} is whole and answers.")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]).resolve())
    except Wrong as error:
        sys.exit(str(error))
    except RegistryUnreachable:
        print("The wheel was built but not tried: the registry of packages cannot be reached.")
        sys.exit(NOT_TRIED)
