"""The table of settings: names, types, defaults and what each does."""

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


def _split_command(value: object) -> object:
    return tuple(shlex.split(value)) if isinstance(value, str) else value


def _split_words(value: object) -> object:
    return tuple(value.replace(",", " ").split()) if isinstance(value, str) else value


def _split_paths(value: object) -> object:
    parts = value.split(os.pathsep) if isinstance(value, str) else value
    if not isinstance(parts, list | tuple):
        return parts
    return tuple(Path(str(part)).expanduser().absolute() for part in parts if str(part))


def _expand_path(value: object) -> object:
    return Path(value).expanduser().absolute() if isinstance(value, str | Path) and str(value) else value


def _check_file_name(value: str) -> str:
    if not value or "\0" in value or {"", ".", ".."} & set(value.split("/")):
        raise ValueError("give a file's path below the home, such as .mine/config.toml")
    return value


Command = Annotated[tuple[str, ...], BeforeValidator(_split_command), Field(min_length=1)]
Words = Annotated[tuple[str, ...], BeforeValidator(_split_words)]
Paths = Annotated[tuple[Path, ...], BeforeValidator(_split_paths)]
Folder = Annotated[Path, BeforeValidator(_expand_path)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Age = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Size = Annotated[ByteSize, Field(gt=0)]
FileName = Annotated[str, AfterValidator(_check_file_name)]
UrlPath = Annotated[str, Field(pattern=r"^(/[A-Za-z0-9._~-]+)*$")]
Sandbox = Literal["auto", "full", "off"]


class AgentSettings(BaseModel):
    """A new agent, or changes to the built-in one of the same name."""

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
    """Every setting of the server. Its variable is `CLAWDFORGE_` and the field's name in upper case."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str = Field(DEFAULT_HOST, min_length=1, description="address to listen on")
    port: int = Field(DEFAULT_PORT, ge=0, le=65_535, description="port to listen on; 0 picks a free one")
    allowed_hosts: Words = Field(
        (),
        description="additional names allowed in a request's Host header, besides loopback names and HOST; "
        "`*` allows any name",
    )
    data_dir: Folder = Field(
        default_factory=lambda: data_dir_default(os.environ),
        description="folder for the database, homes, workspaces, files and tokens; one server at a time",
    )
    admin_token: str | None = Field(
        None,
        min_length=16,
        repr=False,
        description="the operator's token; if unset, one is made and kept in DATA_DIR/admin.token",
    )
    session_ttl_secs: Age = Field(
        3600, description="how long a `ttl` session may be idle before it is closed"
    )
    session_hard_ttl_secs: Age = Field(
        86_400, description="how long after closing a `ttl` session is permanently deleted"
    )
    file_ttl_secs: Age = Field(86_400, description="how long an upload is kept that no open session uses")
    sweep_secs: Seconds = Field(
        60, description="how often the server looks for sessions and files to close or delete"
    )
    max_live_sessions: int = Field(
        1000, ge=0, description="how many `ttl` sessions may be open; creating one more fails with 503"
    )
    max_live_agents: int = Field(
        20, ge=1, description="how many agents may run at the same time; when all are busy, turns wait"
    )
    turn_timeout_secs: Seconds = Field(
        3600, description="time limit for a turn whose request does not set one"
    )
    agent_idle_secs: Age = Field(
        300,
        description="how long an agent may be idle before its process is ended; the next turn restarts it",
    )
    agent_start_secs: Seconds = Field(
        30, description="how long an agent may take to start and answer `initialize`"
    )
    cancel_grace_secs: Seconds = Field(
        3, description="how long an agent may take to end a cancelled turn before its processes are killed"
    )
    permission_timeout_secs: Seconds = Field(
        600, description="how long a permission request waits for a decision before it is refused"
    )
    stop_grace_secs: Seconds = Field(
        10, description="how long open requests and running turns may take to finish when the server stops"
    )
    max_body_bytes: Size = Field(ByteSize(32 * MIB), description="largest JSON body of a request")
    max_file_bytes: Size = Field(ByteSize(1024 * MIB), description="largest file that can be uploaded")
    max_line_bytes: Size = Field(
        ByteSize(32 * MIB),
        description="largest message of an agent; a longer one is dropped, and the history shows that it was",
    )
    max_turn_bytes: Size = Field(
        ByteSize(256 * MIB), description="how much of an agent's output is kept in one turn"
    )
    heartbeat_secs: Seconds = Field(
        15, description="how often a quiet event stream sends a comment to keep the connection open"
    )
    workspace_roots: Paths = Field(
        (Path("/"),),
        description="folders in which callers may choose a working directory; DATA_DIR is always excluded",
    )
    trust_loopback: bool = Field(
        False,
        description="let requests to `/api/…` without a token act as the app `local`; this gives every "
        "program on the machine, agents included, access to `local`",
    )
    hermes_prefix: UrlPath = Field(
        "", description="also serve the hermes dialect under this path, including its list of sessions"
    )
    sandbox: Sandbox = Field(
        "auto",
        description="`auto` uses bubblewrap where it works, `full` also makes the system read-only for "
        "agents, `off` uses process groups only",
    )
    agent_max_processes: int = Field(
        2048,
        ge=1,
        description="how many processes and threads one agent may have, including everything it starts; "
        "enforced where the server can use cgroups, which `GET /healthz` shows",
    )
    agent_max_memory_bytes: Annotated[ByteSize, Field(ge=0)] = Field(
        ByteSize(0),
        description="how much memory one agent may use, including everything it starts and swap; 0 means "
        "three quarters of what the server may use; enforced like AGENT_MAX_PROCESSES",
    )
    default_agent: str | None = Field(
        None,
        description="agent of a session that names none; if unset, `claude` if installed, else `demo`",
    )
    home_copies: int = Field(
        20,
        ge=0,
        description="how many copies of an agent's home are kept per session, at times half as many more",
    )
    home_copy_bytes: Size = Field(
        ByteSize(1024 * MIB),
        description="a home larger than this is not copied, and undo gives the agent the transcript instead",
    )
    idle_exit: Seconds | None = Field(
        None, description="stop the server after this many seconds without requests and turns"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="lowest level that is logged"
    )
    claude_bin: str = Field("claude", min_length=1, description="program that `POST /run` starts")
    agents: dict[str, AgentSettings] = Field(
        default_factory=dict,
        description="agents: `[agents.NAME]` in a settings file, or a command in `CLAWDFORGE_AGENT_NAME`",
    )

    @model_validator(mode="after")
    def _trust_only_loopback(self) -> Self:
        if self.trust_loopback and not is_loopback(self.host):
            raise ValueError(
                f"trust_loopback needs a loopback address to listen on, not {self.host}; set host=127.0.0.1"
            )
        return self

    @property
    def admin_token_file(self) -> Path:
        return self.data_dir / ADMIN_TOKEN_FILE
