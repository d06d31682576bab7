"""Installs a built wheel and a built sdist with the Python that runs this, each alone: `./scripts/pythons`.

Nothing but the standard library is needed, so that any interpreter can run it.
"""  # noqa: INP001 - a script, not a package

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from try_wheel import NOT_TRIED, ROOT, RegistryUnreachable, Wrong, try_out

LOCK: Final = ("--requirement", str(ROOT / "requirements.lock"))
BUILD: Final = ("--requirement", str(ROOT / "requirements-build.lock"))


def install(built: Path, venv: Path) -> Path:
    """An empty environment with what the lock pins and `built`; the folder of its commands."""
    if subprocess.run([sys.executable, "-m", "venv", venv], check=False).returncode:
        raise Wrong("this Python makes no environments; Debian has that in a package of its own")
    pip = (str(venv / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check", "install")
    # A wheel needs nothing to be built; an sdist is built by what was compared with its hashes.
    locks = LOCK if built.suffix == ".whl" else (*LOCK, *BUILD)
    if subprocess.run([*pip, "--require-hashes", *locks], check=False).returncode:
        raise RegistryUnreachable
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", str(built)], check=True)
    return venv / "bin"


def main(folder: Path) -> None:
    (wheel,), (sdist,) = folder.glob("clawdforge-*.whl"), folder.glob("clawdforge-*.tar.gz")
    for built in (wheel, sdist):
        with tempfile.TemporaryDirectory() as name:
            commands = install(built, Path(name) / "venv")
            subprocess.run([commands / "clawdforge", "--version"], check=True, stdout=subprocess.DEVNULL)
            try_out(commands, Path(name))
        print(f"{built.name} answers.", flush=True)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]).resolve())
    except Wrong as error:
        sys.exit(str(error))
    except RegistryUnreachable:
        print("Not tried: what the lock pins cannot be installed here; pip's own words are above.")
        sys.exit(NOT_TRIED)
