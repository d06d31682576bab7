"""The public front end of hermes-webui at two pinned commits: where it comes from and what is taken of it.

Nothing of it is kept in this project. `CLAWDFORGE_TEST_HERMES_WEBUI` names a git repository that has it, a
folder or an address; without it the tests of this folder are left out.
"""

import io
import os
import re
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SOURCE: Final = "CLAWDFORGE_TEST_HERMES_WEBUI"
PUBLIC: Final = "https://github.com/nesquena/hermes-webui"
VERSIONS: Final = {
    "April": "f6e1612c7e9aab97a0866ca8f3985f1fd99f52f6",
    "August": "df65251d58191f1de4ca1894a0bc5b399ce4a4ec",
}
"""v0.50.132 of April 2026, which the dialect was written after, and exp-v0.52.262 of August 2026."""

LOGIN_PAGE: Final = re.compile(r'^_LOGIN_PAGE_HTML = """(.*?)"""', re.DOTALL | re.MULTILINE)
BLANK: Final = re.compile(r"\{\{(\w+)\}\}")
UPLOAD_BYTES: Final = str(20 * 1024 * 1024)


class NotToBeHad(Exception):
    """The front end cannot be fetched here; the text says why."""


@dataclass(frozen=True)
class FrontEnd:
    """One version: its folder `static`, and the few texts that its own server fills in."""

    version: str
    static: Path
    login: str

    def index(self) -> str:
        """The page as its own server sends it to somebody who needs no guard against forged requests."""
        page = (self.static / "index.html").read_text()
        for blank, value in (
            ("__WEBUI_VERSION__", self.version),
            ("__MAX_UPLOAD_BYTES__", UPLOAD_BYTES),
            ("__CSRF_TOKEN_JSON__", '""'),
        ):
            page = page.replace(blank, value)
        return page


def source_of(given: str | None = None) -> str:
    found = given or os.environ.get(SOURCE, "")
    if not found:
        raise NotToBeHad(f"{SOURCE} names no repository of hermes-webui, such as {PUBLIC}")
    return found


def fetch(version: str, source: str, folder: Path) -> FrontEnd:
    """Take one version out of a repository, into `folder`."""
    place = unpack(version, source, folder, "static", "api/routes.py")
    found = LOGIN_PAGE.search((place / "api" / "routes.py").read_text())
    assert found is not None, "its login page is not where it was"
    return FrontEnd(version, place / "static", BLANK.sub(_fill, found[1]))


def unpack(version: str, source: str, folder: Path, *paths: str) -> Path:
    """Some files of one version; where they are."""
    commit = VERSIONS[version]
    repository = Path(source)
    if not repository.is_dir():
        repository = folder / f"{version}.git"
        _git("init", "--quiet", "--bare", str(repository))
        _git("-C", str(repository), "fetch", "--quiet", "--depth", "1", source, commit)
    packed = _git("-C", str(repository), "archive", commit, *paths)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder / version, filter="data")
    return folder / version


def _fill(blank: re.Match[str]) -> str:
    return {"LANG": "en", "OIDC_LOGIN_HTML": ""}.get(blank[1], blank[1].replace("_", " ").title())


def _git(*arguments: str) -> bytes:
    done = subprocess.run(["git", *arguments], capture_output=True, timeout=300, check=False)
    if done.returncode:
        raise NotToBeHad(f"git {arguments[-1]}: {done.stderr.decode(errors='replace').strip()[-300:]}")
    return done.stdout
