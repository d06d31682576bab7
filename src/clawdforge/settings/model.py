"""The table of settings: names, types, defaults and what each does."""

import os
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, ByteSize, ConfigDict, Field, model_validator

from clawdforge.settings.addresses import find_secrets
from clawdforge.settings.checks import check_agent, check_graphs, check_trust, name_host
from clawdforge.settings.kinds import (
    Age,
    Blobs,
    Database,
    Endpoint,
    Faces,
    Folder,
    HeaderName,
    Headers,
    Hosts,
    Network,
    Paths,
    Sandbox,
    Seconds,
    Size,
    Uids,
    UrlPath,
    Words,
)
from clawdforge.settings.tables import AgentSettings, McpSettings
from clawdforge.wire.local import DEFAULT_HOST, DEFAULT_PORT, data_dir_default
from clawdforge.wire.mcp import MAX_SERVERS, McpName

ADMIN_TOKEN_FILE: Final = "admin.token"  # noqa: S105 - a file's name, not a secret
MIB: Final = 1024 * 1024


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
    database_url: Database | None = Field(
        None,
        repr=False,
        description="a Postgres database for sessions, turns and everything else that is not a file, such "
        "as `postgresql://forge:secret@db.lan/forge`; needs `clawdforge[postgres]`; if unset, a file in "
        "DATA_DIR; several servers may share it, each with its own DATA_DIR",
    )
    graphs_database_url: Database | None = Field(
        None,
        repr=False,
        description="a second database on the Postgres of DATABASE_URL, for graphs with `checkpoints = "
        '"database"`; the address that graphs get, with a role that can reach nothing else',
    )
    lease_secs: Seconds = Field(
        10.0,
        ge=3,
        description="with DATABASE_URL: how long a server may show no sign of life before the others take "
        "over its sessions; use the same value for all servers",
    )
    blobs: Blobs = Field(
        "database",
        description="with DATABASE_URL: where uploads and the files of sessions are published for the "
        "other servers: `database`, a folder that all have mounted, or a bucket such as "
        "`s3://forge/files`, which needs `clawdforge[s3]` and the usual AWS variables",
    )
    publish_bytes: Size = Field(
        ByteSize(256 * MIB),
        description="with DATABASE_URL: a home or workspace larger than this is not published, and its "
        "session stays with the server that has it",
    )
    admin_token: str | None = Field(
        None,
        min_length=16,
        repr=False,
        description="the operator's token; if unset, one is made and kept in DATA_DIR/admin.token",
    )
    admin_beyond_loopback: bool = Field(
        False,
        description="on an address that is not loopback, serve the operator's routes over the port too; "
        "without it they are served on DATA_DIR/operator.sock only",
    )
    session_ttl_secs: Age = Field(
        3600, description="how long a `ttl` session may be idle before it is closed"
    )
    session_hard_ttl_secs: Age = Field(
        86_400, description="how long after closing a `ttl` session is permanently deleted"
    )
    file_ttl_secs: Age = Field(86_400, description="how long an upload that no open session uses is kept")
    run_ttl_secs: Age = Field(
        7_776_000, description="how long the record of a one-shot run is kept, 90 days; 0: for ever"
    )
    usage_ttl_secs: Age = Field(
        94_608_000, description="how long the usage of a day is kept, three years; 0: for ever"
    )
    pack_after_secs: Age = Field(
        3600,
        description="how long after the end of a turn its events are packed: they take a tenth of the "
        "space, and readers get the same bytes; 0: never",
    )
    sweep_secs: Seconds = Field(
        60, description="how often the server looks for sessions and files to close or delete"
    )
    max_live_sessions: int = Field(
        1000,
        ge=0,
        description="how many `ttl` sessions may be open, else 503; of 50 or more a fifth is for new apps",
    )
    max_live_agents: int = Field(
        20,
        ge=1,
        description="how many agents may run at the same time; when all are busy, turns wait; a fifth is "
        "reserved for apps that have none",
    )
    app_requests_per_sec: int = Field(
        500,
        ge=1,
        description="how many requests an app may send per second, averaged over ten seconds; beyond it "
        "they fail with 429; POST /admin/apps sets another limit for an app; `local` has none by default",
    )
    app_open_requests: int = Field(
        256, ge=1, description="how many requests of an app may be open at the same time, streams included"
    )
    app_readers: int = Field(128, ge=1, description="how many event streams of an app may be open")
    app_bytes: int = Field(
        20 * 2**30,
        ge=0,
        description="how many bytes an app may store in all forms (`clawdforge disk` shows them); beyond it "
        "new turns, uploads, imports and forks fail with 429; 0: no limit; `local` has none by default",
    )
    app_agents: int = Field(
        0,
        ge=0,
        description="how many agents of an app may live at the same time; its other turns wait; 0: no limit "
        "but the fair share of all; `local` has none by default",
    )
    app_sessions: int = Field(
        500, ge=0, description="how many `ttl` sessions of an app may be open; 0: no limit; `local` has none"
    )
    app_turns: int = Field(
        2000, ge=0, description="how many turns of an app may wait or run; 0: no limit; `local` has none"
    )
    turn_timeout_secs: Seconds = Field(
        3600, description="time limit for a turn whose request does not set one"
    )
    turn_retries: int = Field(
        2,
        ge=0,
        le=10,
        description="how often a prompt that nobody has begun to answer is given to an agent again, in the "
        "same turn, when the model's provider is overloaded or limits the rate; 0: never",
    )
    request_timeout_secs: Seconds = Field(
        900,
        description="time limit for a request; that of the turn if it waits for one; a stream has none",
    )
    agent_idle_secs: Age = Field(
        300,
        description="how long an agent may be idle before its process is ended; the next turn restarts it",
    )
    spare_agents: int = Field(
        2,
        ge=0,
        description="how many spare agents may stand ready for future sessions, each for one app, with the "
        "agent and model of its last new session; they give up their places to anybody; 0: none",
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
    max_bodies_bytes: Size = Field(
        ByteSize(256 * MIB),
        description="memory for all bodies together, not counting the first 64 KiB of each; one app gets "
        "at most half, so none of its bodies may be larger than that; beyond it requests fail with 503",
    )
    max_connections: int = Field(
        1024,
        ge=1,
        description="how many connections the port may have, but never more than half of the descriptors "
        "that the server may open; those on the operator's socket are not counted",
    )
    max_connections_per_peer: int = Field(
        512,
        ge=1,
        description="how many of them may come from one address; behind a proxy, this is for all its callers",
    )
    header_timeout_secs: Seconds = Field(
        10,
        description="how long a connection may take to send the headers of a request; an editor at `/acp` has"
        " three times as long for its `initialize`",
    )
    body_timeout_secs: Seconds = Field(
        20, description="how long the next 16 KiB of a body, or its end, may take to arrive"
    )
    send_timeout_secs: Seconds = Field(
        120,
        description="how long a client may read nothing of its answer before it is dropped; a stream can "
        "be resumed",
    )
    keep_alive_secs: Seconds = Field(
        5, description="how long a connection without a request is kept for the next one"
    )
    max_file_bytes: Size = Field(ByteSize(1024 * MIB), description="largest file that can be uploaded")
    max_line_bytes: Size = Field(
        ByteSize(32 * MIB),
        description="largest message of an agent; a longer one is dropped, and the history shows that it was",
    )
    max_turn_bytes: Size = Field(
        ByteSize(256 * MIB), description="how much of an agent's output is kept in one turn"
    )
    heartbeat_secs: Seconds = Field(
        15,
        description="how often a quiet event stream sends a comment to keep the connection open, and an "
        "editor at `/acp` is asked for a sign of life; one silent for four times as long is dropped",
    )
    workspace_roots: Paths = Field(
        (),
        description="folders in which every app may choose a working directory, besides those granted to "
        "it; if there are none, `local` may choose any and other apps none; never DATA_DIR",
    )
    trust_loopback: bool = Field(
        False,
        description="let requests to `/api/…` without a token act as the app `local`; this gives every "
        "program on the machine access to `local`, except agents and what comes through a proxy",
    )
    hermes_prefix: UrlPath = Field(
        "", description="also serve the hermes dialect under this path, including its list of sessions"
    )
    faces: Faces = Field(
        (),
        description="interfaces for other kinds of programs, each off until it is named: `openai` serves "
        "`/v1/models`, `/v1/chat/completions` and `/v1/responses`, `mcp` serves `/mcp`, `agui` serves "
        "`/sessions/{id}/ag-ui`, `vercel` serves `/sessions/{id}/ui`, `acp` serves `/acp` to editors",
    )
    mcp_decide: bool = Field(
        False,
        description="let callers of the face `mcp` whose token has the scope `decide` decide what agents ask "
        "for, with the tool `decide`; agents of this server never can",
    )
    openai_chat_header: HeaderName = Field(
        "X-OpenWebUI-Chat-Id",
        description="header by which a front end of the face `openai` names its chat, which has one session; "
        "empty: none",
    )
    openai_history: Literal["refuse", "fork"] = Field(
        "refuse",
        description="what happens when a caller of the face `openai` sends a history that differs from its "
        "session's: `refuse` answers 409, `fork` continues in a new session with the history that was sent",
    )
    openai_permissions: Literal["deny", "wait"] = Field(
        "deny",
        description="what agents may do in sessions that the face `openai` makes: `deny` refuses requests, "
        "`wait` lets somebody decide, on the page or through the API; a persona's mode comes first",
    )
    sandbox: Sandbox = Field(
        "auto",
        description="`auto` contains agents with bubblewrap, else with Landlock, and warns if bubblewrap "
        "does not work; `full` starts no agent without bubblewrap; `off` contains none",
    )
    agent_network: Network = Field(
        "open",
        description="network of agents whose table names none: `open` is the machine's, `none` only their "
        "own loopback, `proxy` the hosts of their table and of AGENT_HOSTS; the last two need bubblewrap",
    )
    agent_hosts: Hosts = Field(
        (),
        description="hosts that every agent with the network `proxy` may reach, such as `api.example.com`, "
        "`*.example.com:8443` or `10.0.0.5`; without a port, 80 and 443",
    )
    webhooks: bool = Field(
        False,
        description="let apps register URLs that the server calls with their events; public addresses are "
        "called over https",
    )
    webhook_hosts: Hosts = Field(
        (),
        description="hosts that webhooks may also reach over plain http, and addresses that are not public, "
        "such as `10.0.0.5:8080`; without a port, 80 and 443",
    )
    otel_endpoint: Endpoint | None = Field(
        None,
        description="collector that receives turns and metrics by OTLP over HTTP, such as "
        "`http://127.0.0.1:4318`; needs `clawdforge[otel]`; if unset, nothing is sent",
    )
    otel_headers: Headers = Field(
        default_factory=dict,
        repr=False,
        description="headers for that collector, such as `authorization=Bearer abc,x-tenant=7`",
    )
    otel_content: bool = Field(
        False,
        description="also send the collector what was said: prompts, answers, the input and output of "
        "tools; without this, it gets ids, numbers and names",
    )
    otel_metrics_secs: Age = Field(
        60, description="how often the collector gets the metrics that `/metrics` shows; 0: never"
    )
    schedules: bool = Field(
        True,
        description="let apps have the server submit prompts at scheduled times; while this is off nothing "
        "is run",
    )
    agent_uids: Uids = Field(
        "auto",
        description="users that the agents of apps other than `local` run as, if the server is root and "
        "bubblewrap works: `auto` gives each app its own, `FIRST-LAST` takes them from that range and "
        "starts no such agent where that does not work, `off` runs all as the server's user",
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
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="lowest level logged")
    log_file: Folder | None = Field(None, description="file for the log; if unset, it goes to stderr")
    log_file_bytes: Size = Field(
        ByteSize(8 * MIB),
        description="when LOG_FILE has this size it is renamed, and a new one begun; three are kept in all",
    )
    claude_bin: str = Field("claude", min_length=1, description="program that `POST /run` starts")
    agents: dict[str, AgentSettings] = Field(
        default_factory=dict,
        description="agents: `[agents.NAME]` in a settings file, or a command in `CLAWDFORGE_AGENT_NAME`",
    )
    mcp_servers: dict[McpName, McpSettings] = Field(
        default_factory=dict,
        max_length=MAX_SERVERS,
        repr=False,
        description="MCP servers whose tools agents are given: `[mcp_servers.NAME]` in a settings file",
    )

    @model_validator(mode="after")
    def _trust_only_loopback(self) -> Self:
        check_trust(self.host, trust=self.trust_loopback)
        return self

    @model_validator(mode="after")
    def _check_agents(self) -> Self:
        if self.graphs_database_url is not None:
            check_graphs(self.graphs_database_url, self.database_url)
        for name, agent in self.agents.items():
            check_agent(name, agent, agent.network or self.agent_network, self.graphs_database_url)
        return self

    @property
    def database_secrets(self) -> tuple[str, ...]:
        """What of the databases' addresses nobody may read in a log."""
        return find_secrets(self.database_url, self.graphs_database_url)

    @property
    def graphs_host(self) -> str:
        """Where graphs find their database, as a list of hosts has it."""
        return name_host(self.graphs_database_url) if self.graphs_database_url else ""

    @property
    def admin_token_file(self) -> Path:
        return self.data_dir / ADMIN_TOKEN_FILE
