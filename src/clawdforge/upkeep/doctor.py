"""Looks at a data folder and at this machine, and says what is wrong and what to do about it."""

import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from clawdforge.core.model import SECOND, Clock
from clawdforge.drivers.processes.cgroups import Ceilings, find_cgroups
from clawdforge.drivers.processes.containment import probe
from clawdforge.drivers.registry.registry import Registry, installed
from clawdforge.settings import ADMIN_TOKEN_FILE, Settings
from clawdforge.stores.lock import read_holder
from clawdforge.stores.sqlite import migrations, snapshot
from clawdforge.wire.errors import StoreUnavailable, UnknownAgent
from clawdforge.wire.local import TOKEN_FILE

LITTLE: Final = 200 << 20
SOME: Final = 2 << 30
EPOCH: Final = 1_735_689_600 * SECOND  # 2025
AHEAD: Final = 60 * SECOND
NETWORKED: Final = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "ceph", "afs"})
MOUNTS: Final = Path("/proc/self/mounts")

Level = Literal["ok", "warn", "bad"]


@dataclass(frozen=True, slots=True)
class Finding:
    """`advice` is what to do; a `bad` one has to be done."""

    level: Level
    about: str
    text: str
    advice: str = ""


def examine(settings: Settings, clock: Clock) -> Iterator[Finding]:
    folder = settings.data_dir
    if folder.is_dir():
        yield from _folder(folder)
        yield _server(folder)
        yield from _database(folder, clock)
    else:
        yield Finding("warn", "folder", f"{folder} does not exist yet", "`clawdforge serve` makes it")
    yield _sqlite()
    yield _disk(folder)
    yield from _file_system(folder)
    yield _containment(settings)
    yield _limits(settings)
    yield from _agents(settings)
    yield _clock(clock)


def _folder(folder: Path) -> Iterator[Finding]:
    state = folder.stat()
    if state.st_uid != os.geteuid():
        yield Finding("bad", "folder", f"{folder} belongs to another user", "run as that user, or chown it")
    elif stat.S_IMODE(state.st_mode) & 0o077:
        yield Finding("bad", "folder", f"{folder} is open to others", f"chmod 700 {folder}")
    elif not os.access(folder, os.W_OK):
        yield Finding("bad", "folder", f"{folder} cannot be written", f"chmod u+w {folder}")
    else:
        yield Finding("ok", "folder", str(folder))
    for name in (TOKEN_FILE, ADMIN_TOKEN_FILE, snapshot.FILE):
        path = folder / name
        if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077:
            yield Finding("bad", "folder", f"{path} is open to others", f"chmod 600 {path}")


def _server(folder: Path) -> Finding:
    holder = read_holder(folder)
    if holder is None:
        return Finding("ok", "server", "none runs on this folder")
    where = f"pid {holder.get('pid')}, {holder.get('url') or 'still starting'}"
    return Finding("ok", "server", f"one runs on this folder ({where})")


def _database(folder: Path, clock: Clock) -> Iterator[Finding]:
    path = folder / snapshot.FILE
    if not path.exists():
        yield Finding("warn", "database", "there is none yet", "`clawdforge serve` makes it")
        return
    try:
        found, known = snapshot.read_schema_version(path), len(migrations.list_migrations())
        broken = snapshot.check_integrity(path)
        newest = snapshot.last_write(path) if found else 0
    except StoreUnavailable as error:
        yield Finding("bad", "database", error.message, "restore a backup with `clawdforge restore`")
        return
    if broken:
        advice = "stop the server and restore a backup with `clawdforge restore`"
        yield Finding("bad", "database", f"it is damaged: {broken[0]}", advice)
    elif found > known:
        yield Finding(
            "bad", "database", f"schema {found} is newer than this program's {known}", "install the newer one"
        )
    else:
        size = path.stat().st_size // 1_000_000
        yield Finding("ok", "database", f"whole, schema {found}, {size} MB")
    if newest > clock.now() + AHEAD:
        yield Finding("bad", "clock", "it is behind what is in the database", "set this machine's clock")


def _sqlite() -> Finding:
    version, safe = snapshot.sqlite_version()
    if safe:
        return Finding("ok", "sqlite", version)
    return Finding(
        "warn",
        "sqlite",
        f"{version} can lose writes when two programs write to one database",
        "never write to it while a server runs; install a newer apsw",
    )


def _disk(folder: Path) -> Finding:
    there = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(there).free
    text = f"{free // 1_000_000} MB are free"
    if free < LITTLE:
        return Finding("bad", "disk", text, "make room: turns stop when nothing can be written")
    if free < SOME:
        return Finding("warn", "disk", text, "make room soon")
    return Finding("ok", "disk", text)


def _file_system(folder: Path) -> Iterator[Finding]:
    """The mount that the folder lies on is the longest one above it."""
    try:
        lines = [line.split() for line in MOUNTS.read_text().splitlines()]
    except OSError:
        return
    place = folder.resolve()
    above = [(Path(at), kind) for _, at, kind, *_ in lines if place.is_relative_to(at)]
    kind = max(above, key=lambda one: len(one[0].parts))[1] if above else ""
    if kind in NETWORKED:
        yield Finding("bad", "disk", f"{folder} is on {kind}", "keep the data folder on a local disk")


def _containment(settings: Settings) -> Finding:
    found = probe(settings.sandbox)
    text = f"{found.active} ({found.reason})"
    if found.active != "tree":
        return Finding("ok", "containment", text)
    if settings.sandbox == "full":
        return Finding("bad", "containment", text, "install bubblewrap, or set CLAWDFORGE_SANDBOX=auto")
    return Finding("warn", "containment", text, "install bubblewrap to hide the data folder from agents")


def _limits(settings: Settings) -> Finding:
    """As seen from where this program runs; a server in a unit or container of its own may have more."""
    wanted = Ceilings(processes=settings.agent_max_processes, memory=settings.agent_max_memory_bytes)
    found = find_cgroups(settings.data_dir, f"doctor{os.getpid()}", wanted, dry_run=True)
    processes = "any number of" if found.processes is None else str(found.processes)
    memory = "any" if found.memory is None else f"{found.memory >> 20} MiB of"
    text = f"an agent may have {processes} processes and {memory} memory ({found.details})"
    if found.processes is not None and found.memory is not None:
        return Finding("ok", "limits", text)
    return Finding("warn", "limits", text, "run the server in a systemd unit of its own with Delegate=yes")


def _agents(settings: Settings) -> Iterator[Finding]:
    changes = {name: dict(change) for name, change in settings.agents.items()}
    try:
        registry = Registry({}, changes, settings.default_agent)
    except UnknownAgent as error:
        yield Finding("bad", "agents", error.message, "correct CLAWDFORGE_DEFAULT_AGENT")
        return
    ready = [name for name, spec in registry.specs().items() if installed(spec)]
    yield Finding("ok", "agents", f"{', '.join(ready)} (default: {registry.default})")
    for name in settings.agents:
        if name not in ready:
            spec = registry.specs()[name]
            yield Finding("warn", "agents", f"{name} is not installed", spec.install or "correct its command")


def _clock(clock: Clock) -> Finding:
    if clock.now() < EPOCH:
        return Finding("bad", "clock", "it is years behind", "set this machine's clock")
    return Finding("ok", "clock", "plausible")
