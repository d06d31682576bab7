"""A Postgres that is killed and started again, and one that follows it and takes its place."""

import asyncio
import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import asyncpg

from clawdforge.stores.postgres.link import ALL_ERRORS, LOST
from proofs.kit.server import Stuck
from tests.postgres import find_programs

START_SECS: Final = 60.0
PAUSE: Final = 0.02
SOCKET: Final = ".s.PGSQL.5432"
NAME: Final = "forge"
SETTINGS: Final = {
    "listen_addresses": "",
    # What was written survives the processes; that the machine survives is not what is being proved.
    "fsync": "off",
    "full_page_writes": "off",
    "max_wal_size": "256MB",
    "wal_keep_size": "64MB",
}


class Database:
    """`socket` is that of the Postgres that may be written."""

    def __init__(self, folder: Path, user: str | None) -> None:
        self._folder = folder
        self._user = user
        self._number = 1
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._connection: asyncpg.Connection | None = None
        self._fetching = asyncio.Lock()
        self._run("initdb", "-D", self._data(1), "-U", "postgres", "-Atrust", "-EUTF8", "--locale=C", "-N")

    @property
    def socket(self) -> Path:
        return self._home(self._number) / SOCKET

    def start(self) -> None:
        self._start(self._number)

    async def make(self) -> None:
        """Wait for the start, and make the database that nodes use."""
        link = await self._connect(self._number, "postgres")
        await link.execute(f"CREATE DATABASE {NAME} TEMPLATE template0 ENCODING 'UTF8'")
        await link.close()

    def kill(self) -> None:
        """SIGKILL for every process of it, as when its machine is gone."""
        process = self._processes.pop(self._number)
        process.send_signal(signal.SIGSTOP)  # it starts nobody again
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for pid in (process.pid, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()

    async def wait_up(self) -> None:
        await (await self._connect(self._number)).close()

    async def follow(self) -> None:
        """Make a standby that has everything before a commit is answered from now on."""
        following = self._number + 1
        primary = f"host={self._home(self._number)} user=postgres application_name=standby"
        await asyncio.to_thread(
            self._run, "pg_basebackup", "-D", self._data(following), "-R", "-cfast", "-d", primary
        )
        with (self._data(following) / "postgresql.auto.conf").open("a") as settings:
            settings.write("synchronous_standby_names = ''\n")  # once it is the one that counts
        self._start(following)
        await self.fetch("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
        await self.fetch("SELECT pg_reload_conf()")
        end = asyncio.get_running_loop().time() + START_SECS
        while not await self.fetch("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"):
            if asyncio.get_running_loop().time() > end:
                raise Stuck("the standby does not follow")
            await asyncio.sleep(PAUSE)

    async def promote(self) -> None:
        """After the one that counted was killed: the standby counts."""
        old, self._number = self._number, self._number + 1
        link = await self._connect(self._number)
        await link.fetch("SELECT pg_promote()")
        await link.close()
        shutil.rmtree(self._home(old))

    async def fetch(self, sql: str, *args: Any) -> list[Any]:
        """What the database itself says, past all nodes and proxies."""
        async with self._fetching:
            while True:
                if self._connection is None or self._connection.is_closed():
                    self._connection = await self._connect(self._number)
                try:
                    return list(await self._connection.fetch(sql, *args))
                except LOST:
                    self._connection.terminate()
                    await asyncio.sleep(PAUSE)

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.terminate()

    def end(self) -> None:
        for process in self._processes.values():
            process.send_signal(signal.SIGQUIT)
        for process in self._processes.values():
            process.wait(START_SECS)

    async def _connect(self, number: int, name: str = NAME) -> Any:
        end = asyncio.get_running_loop().time() + START_SECS
        while True:
            try:
                return await asyncpg.connect(
                    user="postgres",
                    database=name,
                    host=str(self._home(number)),
                    timeout=5,
                    command_timeout=30,
                )
            except ALL_ERRORS:
                if asyncio.get_running_loop().time() > end:
                    raise
                await asyncio.sleep(PAUSE)

    def _start(self, number: int) -> None:
        settings = {**SETTINGS, "unix_socket_directories": str(self._home(number))}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (self._folder / "log").open("ab") as log:
            self._processes[number] = subprocess.Popen(
                [find_programs() / "postgres", "-D", self._data(number), *options],
                stdout=log, stderr=log, user=self._user, cwd=self._folder,
            )  # fmt: skip

    def _run(self, program: str, *arguments: str | Path) -> None:
        subprocess.run(
            [find_programs() / program, *arguments],
            check=True, capture_output=True, user=self._user, cwd=self._folder, timeout=START_SECS,
        )  # fmt: skip

    def _home(self, number: int) -> Path:
        home = self._folder / str(number)
        if not home.exists():
            home.mkdir(mode=0o700)
            if self._user is not None:
                os.chown(home, pwd.getpwnam(self._user).pw_uid, -1)
        return home

    def _data(self, number: int) -> Path:
        return self._home(number) / "data"


@contextlib.contextmanager
def run_database() -> Iterator[Database]:
    # Postgres does not run as root, and the path of a socket is short.
    folder = Path(tempfile.mkdtemp(prefix="forge-pg-"))
    user = "nobody" if os.getuid() == 0 else None
    if user is not None:
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
    try:
        database = Database(folder, user)
        try:
            database.start()
            yield database
        finally:
            database.end()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
