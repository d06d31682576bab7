"""The table of settings: names, types, defaults and what each does. Frozen once it is read."""

import ipaddress
import os
import shlex
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ByteSize, ConfigDict, Field, model_validator

from clawdforge.wire.local import DEFAULT_HOST, DEFAULT_PORT, data_dir_default
from clawdforge.wire.quirks import Quirks

ADMIN_TOKEN_FILE: Final = "admin.token"  # noqa: S105 - a file's name, not a secret
MIB: Final = 1024 * 1024


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
    agent_max_processes: int = Field(
        2048,
        ge=1,
        description="processes and threads that one agent may have, with all it starts; held where the "
        "server can make cgroups, as `GET /healthz` says",
    )
    agent_max_memory_bytes: Annotated[ByteSize, Field(ge=0)] = Field(
        ByteSize(0),
        description="memory that one agent may use, with all it starts and with swap; 0 is three quarters "
        "of what the server may use; held as AGENT_MAX_PROCESSES is",
    )
    default_agent: str | None = Field(
        None, description="agent of a session that names none; else `claude` where installed, else `demo`"
    )
    home_copies: int = Field(
        20,
        ge=0,
        description="copies of an agent's home that are kept per session, at times half as many more",
    )
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
    def admin_token_file(self) -> Path:
        return self.data_dir / ADMIN_TOKEN_FILE
