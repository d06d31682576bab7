"""Prints a bill of materials of an installed server (CycloneDX): `.venv/bin/python scripts/sbom.py`.

It reads `requirements.lock`, so it names exactly what `scripts/bootstrap` installs, with the hashes that pip
compares. The image has those of `requirements-image.lock` too. The same lock gives the same bytes.
"""  # noqa: INP001 - a script, not a package

import json
import re
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
LOCK: Final = ROOT / "requirements.lock"
ITSELF: Final = "clawdforge"
ENTRY: Final = re.compile(
    r"^(?P<name>[A-Za-z0-9_.-]+)==(?P<version>[^\s;]+)(?P<rest>.*(?:\n[ ]+.*)*)", re.MULTILINE
)


@dataclass(frozen=True)
class Package:
    """One entry of the lock: its files' hashes, and who needs it."""

    name: str
    version: str
    hashes: tuple[str, ...]
    needed_by: tuple[str, ...]

    @property
    def url(self) -> str:
        """Its package URL: a name for the package everywhere, not an address."""
        return f"pkg:pypi/{normal(self.name)}@{self.version}"


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def read_lock(text: str) -> Iterator[Package]:
    for found in ENTRY.finditer(text):
        comments = re.findall(r"^ +# +(?:via +)?([A-Za-z0-9_.-]+)$", found["rest"], re.MULTILINE)
        yield Package(
            found["name"],
            found["version"],
            tuple(re.findall(r"--hash=sha256:([0-9a-f]{64})", found["rest"])),
            tuple(normal(name) for name in comments if name != "via"),
        )


def licence_of(name: str) -> list[dict[str, Any]]:
    """As its author states it, where the package is installed."""
    try:
        found = metadata.metadata(name).get("License-Expression")
    except metadata.PackageNotFoundError:
        return []
    return [{"expression": found}] if found else []


def describe(package: Package) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": package.url,
        "name": normal(package.name),
        "version": package.version,
        "purl": package.url,
        "hashes": [{"alg": "SHA-256", "content": each} for each in package.hashes],
        "licenses": licence_of(package.name),
    }


def build_bill(text: str) -> dict[str, Any]:
    packages = sorted(read_lock(text), key=lambda package: normal(package.name))
    version = metadata.version(ITSELF)
    top = f"pkg:pypi/{ITSELF}@{version}"
    refs = {ITSELF: top} | {normal(package.name): package.url for package in packages}
    needs: dict[str, list[str]] = {ref: [] for ref in refs.values()}
    for package in packages:
        for name in package.needed_by:
            if name in refs:  # the lock also names packages that only the tests install
                needs[refs[name]].append(package.url)
    serial = uuid.uuid5(uuid.NAMESPACE_URL, top + text)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": top,
                "name": ITSELF,
                "version": version,
                "purl": top,
            }
        },
        "components": [describe(package) for package in packages],
        "dependencies": [{"ref": ref, "dependsOn": sorted(found)} for ref, found in needs.items()],
    }


if __name__ == "__main__":
    json.dump(build_bill(LOCK.read_text()), sys.stdout, indent=2)
    sys.stdout.write("\n")
