"""What the page takes from others lies there exactly as listed, with its licence, and nothing else does."""

import hashlib
import re
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest

FOLDER: Final = Path(__file__).parents[2] / "src" / "clawdforge" / "page" / "vendor"
PACKAGES: Final[list[dict[str, Any]]] = tomllib.loads((FOLDER / "vendor.toml").read_text())["package"]
FILES: Final = {name: file["sha256"] for package in PACKAGES for name, file in package["files"].items()}


@pytest.mark.parametrize("name", FILES)
def test_a_file_has_the_sum_that_the_list_states(name: str) -> None:
    assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == FILES[name]


def test_nothing_else_lies_there() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {*FILES, "vendor.toml"}


def test_every_package_brings_its_licence() -> None:
    for package in PACKAGES:
        assert package["license"]
        assert any(name.endswith(".LICENSE") for name in package["files"]), package["name"]


def test_browsers_find_every_name_that_is_imported() -> None:
    for path in FOLDER.glob("*.js"):
        for name in re.findall(r"""(?:from|import)\s*["']([^"']+)["']""", path.read_text()):
            assert (FOLDER / name).is_file(), f"{path.name} imports {name}"
