"""Finds what a program needs in order to run: its links, its package, its interpreter and that one's home.

An agent sees no home of the operator, but its program often lies in one: under nvm, volta, pipx, uv, pyenv,
`~/.local/bin` or a virtual environment. So the way to the program is walked once more for each start, and
what is met on it is shown to the agent, read-only. Nothing is shown that would be a whole home or hold the
data folder, and nothing that was reached through a folder which an agent may write: it could lead anywhere.
What lies in the folder of another session is shown where the operator names it, but not followed.
"""

# ruff: noqa: PTH110, PTH112, PTH113, PTH114 - pathlib raises for what may not be looked at, and is slower

import os
import re
import shutil
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os.path import exists, isdir, isfile, islink
from pathlib import Path
from typing import Final

from clawdforge.core.models.agents import AgentSpec
from clawdforge.core.models.mcp import McpLaunch
from clawdforge.drivers.processes.mounts import Mount, is_below
from clawdforge.drivers.processes.program_roots import BIN, SHIMS, ProgramRoots, is_system
from clawdforge.drivers.processes.python_paths import find_base, list_extra_paths

SHELLS: Final = ("sh", "bash", "dash", "zsh")
COMMAND_FLAG: Final = re.compile("-[a-zA-Z]*c")
MAX_LINKS: Final = 40
CODE: Final = (".py", ".pyz", ".js", ".mjs", ".cjs", ".ts", ".mts", ".sh", ".rb", ".pl", ".php", ".lua")
NOT_SHOWN: Final = ("/proc", "/dev", "/sys")
"""An agent has its own of these, or none: never the machine's, though its command names something there."""

OF_SESSIONS: Final = ("homes", "workspaces", "runs")
"""Folders of the data folder whose folders agents write."""

NAMED_FILES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE")
NAMED_FOLDERS: Final = ("PYTHONPATH", "NODE_PATH")


@dataclass(frozen=True, slots=True)
class Needs:
    """What the operator said about a program: its commands, and what else it may read."""

    commands: tuple[tuple[str, ...], ...] = ()
    readable: tuple[str, ...] = ()

    @classmethod
    def of(cls, spec: AgentSpec, *others: str, mcp: Sequence[McpLaunch] = ()) -> "Needs":
        """Those of an agent, of other programs that start it, and of MCP servers that the operator named."""
        servers = (server.command for server in mcp if server.by_operator and server.command)
        return cls((spec.command, *((name,) for name in others), *servers), spec.readable)


class Finder:
    """Collects mounts. `closed` are folders that this agent writes: what lies there is not shown again.

    `written` are folders that other agents write: what the operator names there is shown, as far as it stays
    there. Nothing is followed out of either.
    """

    def __init__(
        self,
        env: Mapping[str, str],
        *,
        data_dir: Path,
        closed: Sequence[Path] = (),
        written: Container[str] = (),
        operator_home: Path | None = None,
    ) -> None:
        self._path = env.get("PATH")
        real = data_dir.resolve()
        self._closed = [*map(str, closed), *(f"{real}/{name}" for name in OF_SESSIONS)]
        self._written = written
        self._home = str((operator_home or Path.home()).resolve())
        self._roots = ProgramRoots(Path(self._home), real)
        self._met: set[Path] = set()
        self._mounts: dict[Path, Mount] = {}
        self.doubts: list[str] = []

    @property
    def mounts(self) -> tuple[Mount, ...]:
        return tuple(self._mounts.values())

    def list_written(self) -> tuple[Path, ...]:
        """What is shown of the folders of other agents, who may put links there at any moment."""
        return tuple(
            path for path, mount in self._mounts.items() if mount.is_bind and self._find_writer(path)
        )

    def add_needs(self, needs: Needs, env: Mapping[str, str]) -> None:
        for command in needs.commands:
            self.add_command(command)
        self._add_variables(env)
        for text in needs.readable:
            self._add_named(Path(text).expanduser(), "named by `readable`", asked=True)

    def add_command(self, command: Sequence[str]) -> None:
        """A program with its arguments: a path among them, or `path:name`, is part of the command."""
        program, *words = command
        found = shutil.which(program, path=self._path)
        if found is not None:
            self.add_program(Path(os.path.abspath(found)), "the agent's program")  # noqa: PTH100 -- keeps links
        if Path(program).name == "env":  # another command follows the variables
            variables, rest = _split_env(words)
            self._add_variables(variables)
            if rest:
                self.add_command(rest)
            return
        if Path(program).name in SHELLS and any(
            map(COMMAND_FLAG.fullmatch, words)
        ):  # paths in the line, as far as they are plain
            words = [part.strip(";&|()'\"") for word in words for part in word.split()]
        for word in words:
            path = Path(word) if word.startswith("/") else None
            if path is not None and not exists(path):
                path = Path(word.rpartition(":")[0])
            if path is None or not path.is_absolute() or not exists(path):
                continue
            if any(is_below(str(path), own) for own in NOT_SHOWN):
                continue
            if path.suffix in CODE or (isfile(path) and os.access(path, os.X_OK)):
                self.add_program(path, "named in the agent's command")
            else:
                self._add_named(path, "named in the agent's command")

    def add_program(self, path: Path, why: str) -> None:
        """A program with all that it needs: each link on the way, its package, its interpreter."""
        for place in self._follow(path, why):
            if place in self._met:
                continue
            self._met.add(place)
            is_link = islink(place)
            root = self._roots.find(place)
            writer = self._find_writer(place)
            if writer is not None:  # it and its folder, and nothing that their files name
                self._add_written(place, root, writer, why)
                continue
            if root is not None and not (is_link and place.parent.name not in (*BIN, SHIMS)):
                self._add(Mount(root, "read-only", why))
                self._add_python(root)
            elif not is_link:
                self._add_alone(place, why)
            if not is_link:
                for interpreter in self._list_interpreters(place):
                    self.add_program(interpreter, f"runs {place.name}")

    def _follow(self, path: Path, why: str) -> Iterator[Path]:
        """Each link on the way, in its real folder, and at last what they lead to. Links become mounts."""
        at, rest, met = "", str(path).split("/")[1:], 0
        while rest:
            part = rest.pop(0)
            at = at.rpartition("/")[0] if part == ".." else f"{at}/{part}" if part not in ("", ".") else at
            if not islink(at):
                continue
            met += 1
            link = Path(at)
            if self._is_closed(link) or met > MAX_LINKS:
                return
            if self._find_writer(link) is not None:
                yield link
                return
            target = str(link.readlink())
            if not is_system(link):
                self._add(Mount(link, "link", why, target))
                yield link
            rest = [*target.split("/"), *rest]
            at = "" if target.startswith("/") else at.rpartition("/")[0]
        real = Path(at or "/")
        if exists(real) and not self._is_closed(real):
            yield real

    def _add_python(self, root: Path) -> None:
        if root in self._met:
            return
        self._met.add(root)
        base = find_base(root)
        if base is not None:
            self.add_program(base, "the Python of a virtual environment")
        for path in list_extra_paths(root):
            self._add_named(path, f"installed into {root.name} from a folder")

    def _add_written(self, place: Path, root: Path | None, writer: str, why: str) -> None:
        if root is not None and is_below(str(root), writer):
            self._add(Mount(root, "read-only", why))
        elif not islink(place):
            self._add(Mount(place, "read-only", why))

    def _add_alone(self, place: Path, why: str) -> None:
        if is_system(place):
            return
        self._add(Mount(place, "read-only", why))
        if place.parent.name not in BIN:
            self.doubts.append(
                f"{place} lies in {place.parent}, which is hidden from agents: they see this file alone. "
                "Where it needs others, put it into a folder of its own, or name them under `readable`"
            )

    def _add_variables(self, env: Mapping[str, str]) -> None:
        for name in (*NAMED_FILES, *NAMED_FOLDERS):
            for path in env.get(name, "").split(os.pathsep):
                if path.startswith("/"):
                    self._add_named(Path(path), f"named by {name}")

    def _add_named(self, path: Path, why: str, *, asked: bool = False) -> None:
        """What is named by the operator. A whole home, or what holds the data folder, only if asked for."""
        for place in self._follow(path, why):
            if islink(place) or is_system(place):
                continue
            if self._roots.touches_data(place) or (
                isdir(place) and self._roots.is_wide(str(place)) and not asked
            ):
                self.doubts.append(
                    f"{place} ({why}) is not shown to agents: it is a home, the data folder, or holds one of "
                    "these; name something smaller under `readable`"
                )
            else:
                self._add(Mount(place, "read-only", why))

    def _list_interpreters(self, script: Path) -> Iterator[Path]:
        """What the first line of a script names."""
        try:
            with script.open("rb") as file:
                line = file.readline(512) if file.read(2) == b"#!" else b""
        except OSError:
            return
        words = line.decode(errors="replace").split()
        if words and words[0].startswith("/"):
            yield Path(words[0])
        if words and Path(words[0]).name == "env":
            name = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), "")
            found = shutil.which(name, path=self._path) if name else None
            if found is not None:
                yield Path(os.path.abspath(found))  # noqa: PTH100 -- keeps links

    def _add(self, mount: Mount) -> None:
        self._mounts.setdefault(mount.path, mount)

    def _is_closed(self, path: Path) -> bool:
        return any(is_below(str(path), folder) for folder in self._closed)

    def _find_writer(self, path: Path) -> str | None:
        """The folder of another session that a path lies in.

        One that holds the operator's home does not count: an agent that writes it writes every program there.
        """
        for folder in (path, *path.parents):
            if str(folder) in self._written and not is_below(self._home, str(folder)):
                return str(folder)
        return None


def _split_env(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """The variables that `env` is told to set, and the command that it is to run."""
    variables: dict[str, str] = {}
    rest = list(words)
    while rest and (rest[0].startswith("-") or "=" in rest[0]):
        word = rest.pop(0)
        if word in ("-u", "--unset", "-C", "--chdir"):
            del rest[:1]
        elif not word.startswith("-"):
            name, _, value = word.partition("=")
            variables[name] = value
    return variables, rest


def find_servers_own(executable: Path, *files: Path) -> tuple[Mount, ...]:
    """The interpreter that runs the launcher, and files of ours that run inside."""
    finder = Finder({}, data_dir=Path("/nonexistent"))
    finder.add_program(executable, "runs the launcher")
    own = (Mount(file, "read-only", "prepares the agent's process") for file in files)
    return (*finder.mounts, *own)
