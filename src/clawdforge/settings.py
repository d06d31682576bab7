"""The server's settings: one table of names, types and defaults, read once and passed down frozen.

Rising priority: defaults, the user's TOML file, the folder's, `CLAWDFORGE_*` variables, flags.
"""

import difflib
import ipaddress
import os
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ByteSize,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from clawdforge.wire.local import (
    DEFAULT_HOST,
    DEFAULT_PORT,
    ENV_TOKEN,
    ENV_URL,
    config_file_default,
    data_dir_default,
)
from clawdforge.wire.quirks import Quirks

PREFIX: Final = "CLAWDFORGE_"
AGENT_PREFIX: Final = "CLAWDFORGE_AGENT_"
TEST_PREFIX: Final = "CLAWDFORGE_TEST_"
CLI_PREFIX: Final = "CLAWDFORGE_CLI_"
CLI_TABLE: Final = "cli"
"""What the command line alone reads, in the same files."""

CONFIG_FILE: Final = "clawdforge.toml"
DATABASE_FILE: Final = "forge.db"
ADMIN_TOKEN_FILE: Final = "admin.token"  # noqa: S105 - a file's name, not a secret
MIB: Final = 1024 * 1024
AGENT_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


class BadSettings(Exception):
    """A setting that cannot be used; the message names it, where it came from and what would do."""


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine can reach a server that listens on `host`."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _command(value: object) -> object:
    return tuple(shlex.split(value)) if isinstance(value, str) else value


def _words(value: object) -> object:
    return tuple(value.replace(",", " ").split()) if isinstance(value, str) else value


def _paths(value: object) -> object:
    parts = value.split(os.pathsep) if isinstance(value, str) else value
    if not isinstance(parts, list | tuple):
        return parts
    return tuple(Path(str(part)).expanduser().absolute() for part in parts if str(part))


def _path(value: object) -> object:
    return Path(value).expanduser().absolute() if isinstance(value, str | Path) and str(value) else value


def _file_name(value: str) -> str:
    if not value or "\0" in value or {"", ".", ".."} & set(value.split("/")):
        raise ValueError("a file's name below the home, such as .mine/config.toml")
    return value


Command = Annotated[tuple[str, ...], BeforeValidator(_command), Field(min_length=1)]
Words = Annotated[tuple[str, ...], BeforeValidator(_words)]
Paths = Annotated[tuple[Path, ...], BeforeValidator(_paths)]
Folder = Annotated[Path, BeforeValidator(_path)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Age = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Size = Annotated[ByteSize, Field(gt=0)]
FileName = Annotated[str, AfterValidator(_file_name)]
UrlPath = Annotated[str, Field(pattern=r"^(/[A-Za-z0-9._~-]+)*$")]
Sandbox = Literal["auto", "full", "off"]


class AgentSettings(BaseModel):
    """One agent: a new one, or what is to differ from a built-in one of the same name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: Command | None = None
    driver: str | None = None
    title: str | None = None
    install: str | None = None
    env: Words | None = None
    set_env: dict[str, str] | None = None
    credentials: tuple[FileName, ...] | None = None
    copied: tuple[FileName, ...] | None = None
    settings: dict[FileName, str] | None = None
    version: Command | None = None
    sandbox: Sandbox | None = None
    quirks: Quirks | None = None


class Settings(BaseModel):
    """Every setting of the server. The field's name in upper case behind `CLAWDFORGE_` is its variable."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str = Field(DEFAULT_HOST, min_length=1, description="address to listen on")
    port: int = Field(DEFAULT_PORT, ge=0, le=65_535, description="port to listen on; 0 takes a free one")
    allowed_hosts: Words = Field(
        (),
        description="more names that a request's Host header may have, besides loopback names and HOST; "
        "`*` allows any",
    )
    data_dir: Folder = Field(
        default_factory=lambda: data_dir_default(os.environ),
        description="folder of the database, homes, workspaces, files and tokens; one server at a time",
    )
    database_url: str | None = Field(
        None, description="where the store is; without it the SQLite file `forge.db` in DATA_DIR"
    )
    admin_token: str | None = Field(
        None,
        min_length=16,
        repr=False,
        description="token of the operator; without it one is made and kept in DATA_DIR/admin.token",
    )
    session_ttl_secs: Age = Field(3600, description="a `ttl` session is closed after so long without a turn")
    session_hard_ttl_secs: Age = Field(
        86_400, description="a `ttl` session is deleted so long after it was closed"
    )
    file_ttl_secs: Age = Field(
        86_400, description="an upload that no open session has used is deleted after so long"
    )
    sweep_secs: Seconds = Field(60, description="how often the sweeper looks")
    max_live_sessions: int = Field(
        1000, ge=0, description="open `ttl` sessions that the server holds; one more is answered with 503"
    )
    max_live_agents: int = Field(
        20, ge=1, description="agent processes at the same time; when all are busy, turns wait"
    )
    turn_timeout_secs: Seconds = Field(
        3600, description="time limit of a turn whose request does not name one"
    )
    agent_idle_secs: Age = Field(300, description="an agent without work is put to sleep after so long")
    agent_start_secs: Seconds = Field(30, description="time an agent has to start and answer `initialize`")
    cancel_grace_secs: Seconds = Field(
        3, description="time an agent has to end a cancelled turn before its processes are killed"
    )
    permission_timeout_secs: Seconds = Field(
        600, description="a permission request that nobody decides is refused after so long"
    )
    stop_grace_secs: Seconds = Field(
        10, description="time that open requests and agents have when the server stops"
    )
    max_body_bytes: Size = Field(ByteSize(32 * MIB), description="largest JSON body of a request")
    max_file_bytes: Size = Field(ByteSize(1024 * MIB), description="largest file that can be uploaded")
    max_line_bytes: Size = Field(
        ByteSize(32 * MIB), description="largest message of an agent; a longer one is dropped and marked"
    )
    max_turn_bytes: Size = Field(
        ByteSize(256 * MIB), description="most that is kept of what an agent says in one turn"
    )
    heartbeat_secs: Seconds = Field(15, description="a quiet event stream gets a comment so often")
    workspace_roots: Paths = Field(
        (Path("/"),),
        description="folders inside which a caller may name a working directory; never inside DATA_DIR",
    )
    trust_loopback: bool = Field(
        False,
        description="requests to `/api/…` without a token act as the app `local`; this hands `local` to "
        "every program on the machine, agents too",
    )
    hermes_prefix: UrlPath = Field(
        "", description="the hermes dialect is served under this path as well, with its list of sessions"
    )
    sandbox: Sandbox = Field(
        "auto",
        description="`auto` uses bubblewrap where it works, `full` makes the system read-only for agents as "
        "well, `off` uses process groups only",
    )
    default_agent: str | None = Field(
        None, description="agent of a session that names none; else `claude` where installed, else `demo`"
    )
    home_copies: int = Field(20, ge=0, description="copies of an agent's home that are kept per session")
    home_copy_bytes: Size = Field(
        ByteSize(1024 * MIB),
        description="a home larger than this is not copied; undo then uses the transcript",
    )
    idle_exit: Seconds | None = Field(
        None, description="the server ends by itself after so many seconds without requests and turns"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="least level logged")
    claude_bin: str = Field("claude", min_length=1, description="program that `POST /run` starts")
    agents: dict[str, AgentSettings] = Field(
        default_factory=dict,
        description="commands of agents: `[agents.NAME]` in the file, `CLAWDFORGE_AGENT_NAME` outside",
    )

    @model_validator(mode="after")
    def _trust_only_loopback(self) -> Self:
        if self.trust_loopback and not is_loopback(self.host):
            raise ValueError(f"trust_loopback needs a loopback address to listen on, not {self.host}")
        return self

    @property
    def database_file(self) -> Path:
        return self.data_dir / DATABASE_FILE

    @property
    def admin_token_file(self) -> Path:
        return self.data_dir / ADMIN_TOKEN_FILE


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table of settings, as the reference and `config show` print it."""

    variable: str
    key: str
    type: str
    default: str
    about: str


def table() -> Iterator[Row]:
    """Every setting but `agents`, whose names are open, in the order of the reference."""
    for key, field in Settings.model_fields.items():
        if key != "agents":
            about = field.description or ""
            yield Row(PREFIX + key.upper(), key, _TYPES.get(key) or _kind(key), _default(key), about)


def load(
    env: Mapping[str, str], *, config: Path | None = None, flags: Mapping[str, object] | None = None
) -> Settings:
    """The settings that hold, from all sources; raises BadSettings. A named `config` must exist, and is
    the only file that is read."""
    found = _Found({"data_dir": data_dir_default(env)}, {}, {})
    path = config or Path(CONFIG_FILE)
    for file in [config] if config else [config_file_default(env), path]:
        if config is not None or file.is_file():
            found.add_file(file)
    found.add_env(env)
    for key, value in (flags or {}).items():
        if value is not None:
            found.add(key, value, f"--{key.replace('_', '-')}")
    for agent in (name for name in found.agents if not AGENT_NAME.fullmatch(name)):
        raise BadSettings(f"{agent!r} cannot name an agent; use lower case letters, digits, . _ and -")
    try:
        return Settings.model_validate({**found.values, "agents": found.agents})
    except ValidationError as error:
        raise BadSettings(_explain(error, found.origin, path)) from None


@dataclass(frozen=True, slots=True)
class _Found:
    """Raw values so far, who said them, and the tables of agents."""

    values: dict[str, object]
    origin: dict[str, str]
    agents: dict[str, dict[str, object]]

    def add(self, key: str, value: object, origin: str) -> None:
        self.values[key], self.origin[key] = value, origin

    def add_file(self, path: Path) -> None:
        for key, value in _read(path).items():
            if key == "agents":
                self.agents.update(_agent_tables(value, path))
            else:
                self.add(key, value, f"{key} in {path}")

    def add_env(self, env: Mapping[str, str]) -> None:
        # An empty variable is one that somebody has switched off.
        for name, value in env.items():
            key = name.removeprefix(PREFIX).lower()
            if not name.startswith(PREFIX) or not value or key == "agents":
                continue
            if key in Settings.model_fields:
                self.add(key, value, name)
            elif name.startswith(AGENT_PREFIX):
                agent = name.removeprefix(AGENT_PREFIX).lower().replace("_", "-")
                self.agents[agent] = {**self.agents.get(agent, {}), "command": value}
                self.origin[f"agents.{agent}"] = name


def keep_secret(path: Path, fresh: str) -> str:
    """What the file at `path` holds; where there is none, `fresh`, kept there for its owner's eyes only."""
    if not path.exists():
        draft = path.with_name(f"{path.name}.{os.getpid()}.new")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(fresh + "\n")
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    return path.read_text().strip()


def unknown_variables(env: Mapping[str, str]) -> list[str]:
    """A line about each `CLAWDFORGE_…` variable that means nothing to the server."""
    known = {row.variable for row in table()}
    lines = []
    for name in sorted(env):
        others = (AGENT_PREFIX, TEST_PREFIX, CLI_PREFIX)
        ours = name in known or name in (ENV_URL, ENV_TOKEN) or name.startswith(others)
        if name.startswith(PREFIX) and not ours:
            lines.append(f"{name} is not a setting and has no effect{_hint(name, known)}")
    return lines


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            found = tomllib.load(file)
    except OSError as error:
        raise BadSettings(f"cannot read the settings file {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSettings(f"{path} is not valid TOML: {error}") from None
    found.pop(CLI_TABLE, None)
    for key in found:
        if key not in Settings.model_fields:
            raise BadSettings(f"{path}: unknown setting {key!r}{_hint(key, Settings.model_fields)}")
    return found


def _agent_tables(value: object, path: Path) -> dict[str, dict[str, object]]:
    if isinstance(value, dict) and all(isinstance(item, dict) for item in value.values()):
        return value
    raise BadSettings(f'{path}: write agents as tables, such as [agents.mine] with command = "mine acp"')


def _hint(word: str, known: Mapping[str, object] | set[str]) -> str:
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.75)
    return f"; did you mean {near[0]}?" if near else ""


def _explain(error: ValidationError, origin: Mapping[str, str], path: Path) -> str:
    lines = []
    for problem in error.errors(include_url=False):
        where = [str(part) for part in problem["loc"]]
        message = problem["msg"].removeprefix("Value error, ")
        if not where:
            lines.append(message)
            continue
        name = ".".join(where[:2]) if where[0] == "agents" else where[0]
        source = origin.get(name) or f"{'.'.join(where)} in {path}"
        shown = "" if where[0] == "admin_token" else f" (it is {problem['input']!r})"
        lines.append(f"{source}: {message}{shown}")
    return "\n".join(lines)


_TYPES: Final = {
    "allowed_hosts": "names, comma",
    "workspace_roots": "paths, `:`",
    "data_dir": "path",
    "sandbox": "auto, full, off",
    "log_level": "debug, info, warning, error",
    "idle_exit": "seconds",
}


def _kind(key: str) -> str:
    if key.endswith("_secs"):
        return "seconds"
    if key.endswith("_bytes"):
        return "size, such as 32MiB"
    kind = Settings.model_fields[key].annotation
    return {int: "number", bool: "true or false"}.get(kind, "text") if isinstance(kind, type) else "text"


def _default(key: str) -> str:
    if key == "data_dir":
        return "`$XDG_DATA_HOME/clawdforge`, else `~/.local/share/clawdforge`"
    value = Settings.model_fields[key].default
    if value in (None, (), ""):
        return "none"
    if isinstance(value, ByteSize):
        return value.human_readable()
    if isinstance(value, tuple):
        return os.pathsep.join(str(item) for item in value)
    return str(value).lower() if isinstance(value, bool) else str(value)
