"""The walls of the source tree, as data: who may look into which others. `layout.py` holds them."""

import re
from collections.abc import Mapping
from typing import Final

ROOT: Final = "clawdforge"
MAX_LINES: Final = 400

LAYERS: Final[Mapping[str, frozenset[str]]] = {
    "wire": frozenset({"wire"}),
    "core": frozenset({"wire", "core"}),
    "stores": frozenset({"wire", "core", "disk", "folder", "by_name", "stores"}),
    "jsonrpc": frozenset({"wire", "jsonrpc"}),  # what agents and their clients speak, seen from either end
    "drivers": frozenset({"wire", "core", "jsonrpc", "scripted", "disk", "drivers"}),
    "faces": frozenset({"wire", "client", "jsonrpc", "faces"}),
    "http": frozenset({"wire", "core", "http", "by_name"}),
    "telemetry": frozenset({"wire", "core", "telemetry", "by_name"}),
    "graphs": frozenset({"graphs"}),
    "settings": frozenset({"wire", "settings"}),
    "logs": frozenset({"wire", "log_limit"}),
    **dict.fromkeys(("log_limit", "lifetime", "lacks", "by_name"), frozenset[str]()),
    "folder": frozenset({"wire", "disk"}),
    "folder_lock": frozenset({"wire", "folder"}),
    "disk": frozenset(),  # what must survive a loss of power is written by stores, drivers and upkeep alike
    "listeners": frozenset({"wire", "settings"}),
    "outbound": frozenset({"wire", "core"}),
    "editors": frozenset({"client", "faces", "http"}),  # a face that the server itself is the client of
    "upkeep": frozenset({"wire", "core", "stores", "drivers", "settings", "disk", "by_name", "upkeep"})
    | {"folder_lock"},
    "bounds": frozenset({"core", "http", "listeners", "settings"}),
    "machine": frozenset({"core", "drivers", "settings"}),
    "parts": frozenset({"wire", "core", "stores", "drivers", "telemetry", "settings", "bounds", "outbound"})
    | {"machine"},
    "server": frozenset({"wire", "core", "drivers", "http", "settings", "parts", "folder_lock"})
    | {"lifetime", "bounds", "listeners", "by_name"},
    "start": frozenset({"wire", "drivers", "settings", "lacks", "machine", "logs", "lifetime", "listeners"})
    | {"folder_lock", "by_name"},  # it imports `parts` and `server` by name, beside a look at the machine
    "client": frozenset({"wire", "client"}),
    "cli": frozenset({"wire", "client", "cli", "faces", "settings", "by_name"}),
    "scripted": frozenset({"scripted"}),
    "__main__": frozenset({"cli"}),
    "": frozenset({"client"}),
}
"""What each part may import of ours. Nobody imports `start` or `cli` but those named here."""

ROOMS: Final[Mapping[str, frozenset[str]]] = {
    "core": frozenset({"models", "ports", "pacing"}),
    "core.pacing": frozenset({"models", "ports"}),
    "core.models": frozenset(),
    "core.ports": frozenset({"models"}),
    "core.rules": frozenset({"models", "ports"}),
    "core.imports": frozenset({"models", "rules"}),
    "core.running": frozenset({"models", "ports", "rules", "pacing"}),
    "core.services": frozenset({"models", "ports", "rules", "pacing", "imports", "running"}),
    "drivers": frozenset({"processes", "folders"}),
    "drivers.processes": frozenset(),
    "drivers.folders": frozenset({"processes"}),
    "drivers.registry": frozenset({"processes"}),
    "drivers.acp": frozenset({"processes", "folders"}),
    "drivers.acpx": frozenset({"processes", "folders", "acp"}),  # what acpx prints is ACP
    "stores": frozenset({"sqlite"}),
    **dict.fromkeys(("stores.blobs", "stores.sqlite"), frozenset[str]()),
    "stores.postgres": frozenset({"sqlite"}),  # the same rows by the same names, in another dialect
    "cli": frozenset({"target"}),
    "cli.target": frozenset(),
    "cli.output": frozenset({"target"}),
    "cli.repl": frozenset({"target", "output"}),
    "cli.commands": frozenset({"target", "output"}),  # the conversation is imported when it begins
    "faces": frozenset(),
    "faces.acp": frozenset(),
    "faces.mcp": frozenset(),
    "http": frozenset({"dialects", "connections", "access", "requests", "replies", "web_page"}),
    "http.web_page": frozenset[str](),
    "http.replies": frozenset({"connections"}),
    "http.requests": frozenset[str](),
    "http.access": frozenset({"connections"}),
    "http.connections": frozenset({"requests"}),
    "http.dialects": frozenset({"connections", "access", "requests", "replies"}),
}
"""The rooms of a part, and which others of the same part each may look into. What stands in no room is the
hall: every room may use it, and it may look only into those named at the part's own name."""

PURE: Final = f"{ROOT}.core.rules"
PURE_PORTS: Final = frozenset({"Tx", "View"})
"""Rules are plain functions over a transaction: they wait for nothing and know no other port."""

PROTOCOL: Final = re.compile(
    r"\b(?:jsonrpc|sessionUpdate|toolCallId|optionId|rawInput|rawOutput|stopReason)\b|[\"']params[\"']"
)
"""Words of the protocol that agents speak. Drivers read it, `wire` writes it out, core does not know it."""

FENCES: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("fastapi", "starlette", "uvicorn", "websockets"), frozenset({"http", "server"})),
    **dict.fromkeys(("apsw", "sqlite3", "asyncpg"), frozenset({"stores"})),
    **dict.fromkeys(("subprocess", "pty"), frozenset({"drivers", "scripted", "client", "cli"})),
    **dict.fromkeys(("httpx2", "httpcore2"), frozenset({"client", "cli"})),
    **dict.fromkeys(("click", "rich", "prompt_toolkit"), frozenset({"cli"})),
    **dict.fromkeys(("langgraph", "langchain_core", "deepagents", "psycopg"), frozenset({"graphs"})),
    "opentelemetry": frozenset({"telemetry"}),
    "multiprocessing": frozenset(),
}
"""Packages that only some parts may use."""

SPAWNING: Final[Mapping[str, frozenset[str]]] = {
    "os": frozenset(
        {"fork", "forkpty", "posix_spawn", "posix_spawnp", "system", "popen", "execv", "execvpe"}
    ),
    "asyncio": frozenset({"create_subprocess_exec", "create_subprocess_shell"}),
}
NO_CLIENTS: Final = frozenset(
    {
        (f"{ROOT}.cli.commands.serve", f"{ROOT}.start"),
        *(
            (f"{ROOT}.cli.commands.upkeep", f"{ROOT}.upkeep.{name}")
            for name in ("archive", "backup", "deep", "doctor", "unpacking")
        ),
        (f"{ROOT}.cli.commands.upkeep", f"{ROOT}.core.clock"),
        *((f"{ROOT}.cli.commands.archive", f"{ROOT}.upkeep.{name}") for name in ("archive", "ledgers")),
        *((f"{ROOT}.cli.commands.migrate", f"{ROOT}.upkeep.{name}") for name in ("archive", "moving")),
        (f"{ROOT}.cli.commands.migrate", f"{ROOT}.core.clock"),
        (f"{ROOT}.cli.commands.sandbox", f"{ROOT}.upkeep.sandbox"),
        (f"{ROOT}.cli.commands.setup", f"{ROOT}.drivers.registry.node"),
    }
)
"""What the commands import that are no client of a server, but run one or look into its data folder."""

LAZY: Final = frozenset(
    {ROOT, f"{ROOT}.client", f"{ROOT}.client._lazy", f"{ROOT}.by_name", f"{ROOT}.graphs.loading"}
)
"""Packages whose names are looked up when they are first used (PEP 562), and the one place where the client
does so with what is heavy; the one place where the command that was called, and the faces and the collector
that the settings name, are imported, since all of them together take longer than a start may; and the host of
graphs, which imports what its user names."""

TASK_TOPS: Final = frozenset(
    {
        f"{ROOT}.cli.lazy",
        f"{ROOT}.core.running.attendant",
        f"{ROOT}.core.running.background",
        f"{ROOT}.core.running.boundary",
        f"{ROOT}.core.running.membership",
        f"{ROOT}.core.running.spares",
        f"{ROOT}.core.running.supervisor",
        f"{ROOT}.core.running.wishes",
        *(f"{ROOT}.core.services.{name}" for name in ("courier", "timekeeper")),
        f"{ROOT}.jsonrpc.rpc",
        f"{ROOT}.graphs.turn",
        f"{ROOT}.http.middleware",
        f"{ROOT}.scripted.methods",
        *(f"{ROOT}.stores.postgres.{name}" for name in ("works", "writer")),
        *(f"{ROOT}.stores.sqlite.{name}" for name in ("checkpoints", "writer")),
        f"{ROOT}.telemetry.pump",
    }
)
"""Modules with the top of a task or of a request, where any error has to become an outcome."""

CLOCK: Final = f"{ROOT}.core.clock"
OUTSIDE: Final = frozenset({"client", "cli", "scripted"})
"""Parts that are not the server: they read the time where they need it."""
