"""Examines a data folder and this machine, and says what is wrong and what to do about it."""

import os
import shlex
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from clawdforge.by_name import load
from clawdforge.core.clock import SECOND, Clock
from clawdforge.core.models.agents import AgentSpec
from clawdforge.drivers.processes.cgroups import find_cgroups
from clawdforge.drivers.processes.containment import NAMESPACES, Containment, find_containment
from clawdforge.drivers.processes.group_trees import Ceilings
from clawdforge.drivers.processes.user_wall import try_users
from clawdforge.drivers.registry.node import NODE, comes_by_npm, find_fault, name_version, read_node_version
from clawdforge.drivers.registry.registry import Registry, is_installed
from clawdforge.folder_lock import read_holder
from clawdforge.settings import ADMIN_TOKEN_FILE, Settings
from clawdforge.stores.sqlite import migrations, snapshot
from clawdforge.upkeep.sandbox import describe
from clawdforge.wire.errors import AgentStartFailed, StoreUnavailable, UnknownAgent
from clawdforge.wire.local import TOKEN_FILE

TOO_LITTLE_BYTES: Final = 200 << 20
LITTLE_BYTES: Final = 2 << 30
EPOCH: Final = 1_735_689_600 * SECOND  # 2025
AHEAD: Final = 60 * SECOND
NETWORKED: Final = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "ceph", "afs"})
EXAMINE: Final = "clawdforge.stores.postgres.examination:examine_database"
EXAMINE_GRAPHS: Final = "clawdforge.stores.postgres.examination:examine_graphs"
MOUNTS: Final = Path("/proc/self/mounts")

Level = Literal["ok", "warn", "bad"]
REPAIR: Final = "stop the server and run `clawdforge doctor --repair`"


@dataclass(frozen=True, slots=True)
class Finding:
    """`advice` says what to do; for a `bad` finding it is necessary."""

    level: Level
    about: str
    text: str
    advice: str = ""


def examine(settings: Settings, clock: Clock) -> Iterator[Finding]:
    folder = settings.data_dir
    if folder.is_dir():
        yield from _check_folder(folder)
        yield _check_server(folder)
        if settings.database_url is None:
            yield from _check_database(folder, clock)
    else:
        yield Finding("warn", "folder", f"{folder} does not exist yet", "`clawdforge serve` creates it")
    yield from [_check_sqlite()] if settings.database_url is None else _check_postgres(settings.database_url)
    if settings.database_url is not None and settings.graphs_database_url is not None:
        yield from _check_graphs(settings.database_url, settings.graphs_database_url)
    yield _check_disk(folder)
    yield from _check_file_system(folder)
    containment = try_users(find_containment(settings.sandbox), settings.agent_uids, settings.data_dir)
    yield _check_containment(settings, containment)
    yield _check_limits(settings)
    yield _tell_retention(settings)
    yield from _check_agents(settings, containment)
    yield _check_clock(clock)


def _check_folder(folder: Path) -> Iterator[Finding]:
    state = folder.stat()
    if state.st_uid != os.geteuid():
        advice = f"run as that user, or `chown -R {os.geteuid()} {folder}`"
        yield Finding("bad", "folder", f"{folder} belongs to another user", advice)
    elif stat.S_IMODE(state.st_mode) & 0o077:
        yield Finding("bad", "folder", f"other users can read {folder}", f"chmod 700 {folder}")
    elif not os.access(folder, os.W_OK):
        yield Finding("bad", "folder", f"{folder} cannot be written", f"chmod u+w {folder}")
    else:
        yield Finding("ok", "folder", str(folder))
    for name in (TOKEN_FILE, ADMIN_TOKEN_FILE, snapshot.FILE):
        path = folder / name
        if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077:
            yield Finding("bad", "folder", f"other users can read {path}", f"chmod 600 {path}")


def _check_server(folder: Path) -> Finding:
    holder = read_holder(folder)
    if holder is None:
        return Finding("ok", "server", "not running on this folder")
    where = f"pid {holder.get('pid')}, {holder.get('url') or 'still starting'}"
    return Finding("ok", "server", f"running on this folder ({where})")


def _check_database(folder: Path, clock: Clock) -> Iterator[Finding]:
    path = folder / snapshot.FILE
    if not path.exists():
        yield Finding("warn", "database", "not created yet", "`clawdforge serve` creates it")
        return
    try:
        found, known = snapshot.read_schema_version(path), len(migrations.list_migrations())
        broken = snapshot.check_integrity(path)
        last_write = snapshot.last_write(path) if found else 0
        pauses = snapshot.read_pauses(path)
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
        yield Finding("ok", "database", f"intact, schema {found}, {_human(path.stat().st_size)}")
    if last_write > clock.now() + AHEAD:
        yield Finding("bad", "clock", "behind the newest entry in the database", "set this machine's clock")
    for app, agent, reason in pauses:
        yield _describe_pause(app, agent, reason)


def _check_postgres(url: str) -> Iterator[Finding]:
    try:
        examine_database = load(EXAMINE)
    except ModuleNotFoundError as error:
        yield Finding("bad", "database", f"{error.name} is missing", "pip install 'clawdforge[postgres]'")
        return
    for level, text, advice in examine_database(url):
        yield Finding(level, "database", text, advice)


def _check_graphs(main: str, given: str) -> Iterator[Finding]:
    try:
        examine_graphs = load(EXAMINE_GRAPHS)
    except ModuleNotFoundError:
        return  # which was told of the server's own database
    for level, text, advice in examine_graphs(main, given):
        yield Finding(level, "graphs", text, advice)


def _describe_pause(app: str, agent: str, reason: str | None) -> Finding:
    names = [(kind, name) for kind, name in (("app", app), ("agent", agent)) if name]
    what = ", ".join(f"the {kind} {name}" for kind, name in names) or "everything"
    text = f"{what}{f' ({reason})' if reason else ''}: no turn starts there"
    return Finding("warn", "paused", text, " ".join(["clawdforge resume", *(f"--{k} {n}" for k, n in names)]))


def _check_sqlite() -> Finding:
    version, safe = snapshot.sqlite_version()
    if safe:
        return Finding("ok", "sqlite", version)
    return Finding(
        "warn",
        "sqlite",
        f"{version} can lose writes when two programs write to one database",
        "do not write to the database while a server runs; install a newer apsw",
    )


def _human(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.1f} MiB"


def _check_disk(folder: Path) -> Finding:
    there = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(there).free
    text = f"{_human(free)} are free"
    if free < TOO_LITTLE_BYTES:
        return Finding("bad", "disk", text, "free some space: turns stop when the disk is full")
    if free < LITTLE_BYTES:
        return Finding("warn", "disk", text, "free some space soon")
    return Finding("ok", "disk", text)


def _check_file_system(folder: Path) -> Iterator[Finding]:
    """Warn about network file systems. The folder's mount point is the longest one above it."""
    try:
        lines = [line.split() for line in MOUNTS.read_text().splitlines()]
    except OSError:
        return
    real_path = folder.resolve()
    above = [(Path(at), kind) for _, at, kind, *_ in lines if real_path.is_relative_to(at)]
    kind = max(above, key=lambda one: len(one[0].parts))[1] if above else ""
    if kind in NETWORKED:
        advice = "put the data folder on a local disk with --data-dir"
        yield Finding("bad", "disk", f"{folder} is on a network file system ({kind})", advice)


def _check_containment(settings: Settings, found: Containment) -> Finding:
    text = f"{found.active} ({found.reason}); walls: {', '.join(found.wall_names)}"
    if found.active in NAMESPACES and found.why_no_users is not None:
        advice = "set CLAWDFORGE_AGENT_UIDS to a range that works here, or to off"
        return Finding("warn", "containment", f"{text}; not uid: {found.why_no_users}", advice)
    if found.active in NAMESPACES and not found.walls.reasons:
        return Finding("ok", "containment", text)
    if found.active in NAMESPACES:
        missing = "; ".join(found.walls.reasons)
        return Finding("warn", "containment", f"{text}; not {missing}", "a newer kernel has all of them")
    if settings.sandbox == "full":
        advice = "install bubblewrap; until it works, no agent starts"
        return Finding("bad", "containment", f"{text}, but CLAWDFORGE_SANDBOX is full", advice)
    if found.active == "landlock":
        return Finding(
            "warn", "containment", text, "install bubblewrap to hide processes and folders as well"
        )
    advice = "install bubblewrap, or see that user namespaces are allowed"
    return Finding("warn", "containment", f"{text}: agents can read and write whatever you can", advice)


def _check_limits(settings: Settings) -> Finding:
    """What can be limited from here. A server in a unit or container of its own may be able to do more."""
    wanted = Ceilings(processes=settings.agent_max_processes, memory=settings.agent_max_memory_bytes)
    found = find_cgroups(settings.data_dir, f"doctor{os.getpid()}", wanted, dry_run=True)
    processes = "any number of" if found.processes is None else str(found.processes)
    memory = "any" if found.memory is None else f"{found.memory >> 20} MiB of"
    text = f"an agent may have {processes} processes and {memory} memory ({found.details})"
    if found.processes is not None and found.memory is not None:
        return Finding("ok", "limits", text)
    return Finding("warn", "limits", text, "run the server in a systemd unit of its own with Delegate=yes")


def _tell_retention(settings: Settings) -> Finding:
    idle, rest = (
        f"{secs / 3600:g} h" for secs in (settings.session_ttl_secs, settings.session_hard_ttl_secs)
    )
    text = f"one that is not to be kept closes after {idle} without a turn, and is deleted {rest} later"
    return Finding("ok", "sessions", text)


def _check_agents(settings: Settings, containment: Containment) -> Iterator[Finding]:
    changes = {name: dict(change) for name, change in settings.agents.items()}
    try:
        registry = Registry({}, changes, settings.default_agent)
    except UnknownAgent as error:
        yield Finding("bad", "agents", error.message, "correct CLAWDFORGE_DEFAULT_AGENT")
        return
    ready = [name for name, spec in registry.specs().items() if is_installed(spec)]
    yield Finding("ok", "agents", f"{', '.join(ready)} (default: {registry.default})")
    for name in settings.agents:
        if name not in ready:
            spec = registry.specs()[name]
            yield Finding("warn", "agents", f"{name} is not installed", spec.install or "correct its command")
    yield from _check_node([registry.spec(name) for name in ready])
    for name in ready:
        yield from _check_sight(settings, registry.spec(name), containment)


def _check_node(specs: list[AgentSpec]) -> Iterator[Finding]:
    """Node.js, for the agents here that are programs for it."""
    names = [spec.name for spec in specs if comes_by_npm(shlex.split(spec.install or ""))]
    if not names:
        return
    node = read_node_version()
    fault = find_fault(node)
    who = f"{', '.join(names)} need{'s' if len(names) == 1 else ''}"
    if fault:
        yield Finding("warn", "node", f"{who} {fault}", f"install Node.js {name_version(NODE)} or newer")
    elif node:
        yield Finding("ok", "node", f"{name_version(node)}, for {', '.join(names)}")


def _check_sight(settings: Settings, spec: AgentSpec, containment: Containment) -> Iterator[Finding]:
    """What an agent would see in short, and what may be missing."""
    try:
        view = describe(settings, spec, os.environ, containment)
    except AgentStartFailed as error:
        yield Finding("bad", "agents", f"{spec.name} cannot be started: {error.message}", "see above")
        return
    if view.active != "tree":
        places = ", ".join(map(str, view.found)) or "nothing else"
        yield Finding("ok", "agents", f"{spec.name} sees the system, its own folders, and {places}")
    for doubt in view.doubts:
        yield Finding("warn", "agents", f"{spec.name}: {doubt}", f"clawdforge sandbox show {spec.name}")


def _check_clock(clock: Clock) -> Finding:
    if clock.now() < EPOCH:
        return Finding("bad", "clock", "years behind", "set this machine's clock")
    return Finding("ok", "clock", "plausible")
