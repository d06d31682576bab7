"""Fetches and verifies what the page takes from others: `.venv/bin/python scripts/vendor.py`.

Reads `src/clawdforge/page/vendor/vendor.toml`: the version and the sha512 of each package, and the sha256 of
each file as it lies there. Needs no Node. The registry is the one that `npm_config_registry` or npm's own
settings name. `--write` notes the sums of the files after a version was changed by hand.
"""  # noqa: INP001 - a script, not a package

import base64
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import urllib.request
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
FOLDER: Final = ROOT / "src" / "clawdforge" / "page" / "vendor"
LIST: Final = FOLDER / "vendor.toml"
SECONDS: Final = 60
MAX_BYTES: Final = 32 << 20

PLACES: Final = {
    b"preact": b"./preact.js",
    b"preact/hooks": b"./preact.hooks.js",
    b"@preact/signals-core": b"./signals-core.js",
}
"""Browsers know no bare names without a map that stands in the page, which our policy forbids."""

IMPORT: Final = re.compile(rb"""(from\s*|import\s*)(["'])([^"'./][^"']*)\2""")
SOURCE_MAP: Final = re.compile(rb"\n?//# sourceMappingURL=[^\n]*\n?\s*$")


def find_registry() -> str:
    """As npm would: the environment, then its settings. No file of ours names a host."""
    named = os.environ.get("npm_config_registry")  # noqa: SIM112 - npm writes it small
    for line in _settings() if not named else ():
        key, _, value = line.partition("=")
        if key.strip() == "registry":
            named = value.strip()
    if not named and (npm := shutil.which("npm")):
        done = subprocess.run([npm, "config", "get", "registry"], capture_output=True, text=True, check=False)
        named = done.stdout.strip()
    if not named:
        sys.exit("no registry is known: set npm_config_registry to its address")
    return named.rstrip("/")


def _settings() -> list[str]:
    file = Path.home() / ".npmrc"
    return file.read_text(encoding="utf-8").splitlines() if file.is_file() else []


def fetch(registry: str, package: dict[str, Any]) -> bytes:
    """The package's archive, which has exactly the sum that the list states."""
    name = package["name"]
    url = f"{registry}/{name}/-/{name.rpartition('/')[2]}-{package['version']}.tgz"
    if not url.startswith(("https://", "http://")):
        sys.exit(f"the registry's address {registry} is neither https nor http")
    with urllib.request.urlopen(url, timeout=SECONDS) as answer:  # noqa: S310 - looked at above
        archive: bytes = answer.read(MAX_BYTES)
    found = base64.b64encode(hashlib.sha512(archive).digest()).decode()
    if found != package["sha512"]:
        sys.exit(f"{name} {package['version']} has the sum {found}, not {package['sha512']}")
    return archive


def read_member(archive: bytes, path: str) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        member = tar.extractfile(f"package/{path}")
        if member is None:
            sys.exit(f"the package has no file {path}")
        return member.read()


def fit(content: bytes) -> bytes:
    """The same program for a browser without a map of names, and without a note of a map that is not here."""

    def place(found: re.Match[bytes]) -> bytes:
        if found[3] not in PLACES:
            sys.exit(f"nobody knows where {found[3].decode()} lies")
        return found[1] + found[2] + PLACES[found[3]] + found[2]

    return SOURCE_MAP.sub(b"\n", IMPORT.sub(place, content))


def main() -> None:
    text = LIST.read_text(encoding="utf-8")
    registry = find_registry()
    for package in tomllib.loads(text)["package"]:
        archive = fetch(registry, package)
        for name, file in package["files"].items():
            content = read_member(archive, file["from"])
            content = fit(content) if name.endswith(".js") else content
            found = hashlib.sha256(content).hexdigest()
            if "--write" in sys.argv[1:]:
                line = re.compile(rf'^("{re.escape(name)}" = .*sha256 = ")[0-9a-f]*"', re.MULTILINE)
                text = line.sub(rf'\g<1>{found}"', text)
            elif found != file["sha256"]:
                sys.exit(f"{name} has the sum {found}, not {file['sha256']}; --write notes it")
            (FOLDER / name).write_bytes(content)
        print(f"{package['name']} {package['version']}")
    LIST.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
