"""Graphs with their checkpoints in a database: what a hostile one reaches, and how it fails."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.api.harness import App, Server
from tests.api.talk import do, say
from tests.graph_database import PASSWORD, ROLE, GraphDatabase, free_port, write_agents
from tests.needs import needs
from tests.postgres import Postgres, run_postgres

pytestmark = [
    *(needs("postgres"), needs("langgraph"), needs("deepagents"), needs("langgraph-postgres")),
    pytest.mark.slow,
    pytest.mark.timeout(300),  # each start of a graph takes seconds of a processor that others use too
]
Start = Callable[..., Server]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with run_postgres(port=free_port()) as running:
        yield running


@pytest.fixture
def database(postgres: Postgres) -> GraphDatabase:
    return GraphDatabase(postgres)


@pytest.fixture
def begin(database: GraphDatabase, tmp_path: Path) -> Iterator[Start]:
    started: list[Server] = []

    def start(more: str = "") -> Server:
        file = write_agents(tmp_path, more)
        started.append(Server(tmp_path / "data", database.settings, "--config", str(file)))
        return started[-1]

    yield start
    for server in started:
        server.stop()


def run_sql(app: App, session_id: str, prompt: str) -> str:
    return str(json.loads(say(app, session_id, prompt)))


def test_a_hostile_graph_reaches_its_own_threads_and_nothing_else(
    begin: Start, database: GraphDatabase
) -> None:
    server = begin()
    victim, thief = server.app("victim"), server.app("thief")
    theirs, other = victim.session(agent="graph"), thief.session(agent="graph")
    mine = thief.session(agent="hostile")
    say(victim, theirs, "echo hidden treasure")
    say(thief, other, "echo of the same app")
    threads = "SELECT DISTINCT thread_id FROM checkpoints"
    seen = run_sql(thief, mine, f"own {threads}")
    assert seen == str([[name] for name in database.list_threads() if name.startswith(mine)]) != "[]"
    assert run_sql(thief, mine, f"bare {threads}") == "[]"
    for table in ("checkpoint_blobs", "checkpoint_writes"):
        assert theirs not in run_sql(thief, mine, f"own TABLE {table}")
    assert "permission denied for table passes" in run_sql(thief, mine, "own SELECT * FROM passes")
    assert "permission denied for table marks" in run_sql(thief, mine, "own SELECT * FROM marks")
    server_tables = run_sql(thief, mine, f"{database.main_name} TABLE sessions")
    assert "permission denied for database" in server_tables
    said = json.dumps(thief.http.get(f"/sessions/{mine}/events", params={"limit": 1000}).json())
    assert "treasure" not in said


def test_a_graphs_tools_do_not_inherit_the_secret(begin: Start) -> None:
    app = begin().app()
    names = json.loads(say(app, app.session(agent="graph"), "env"))
    assert [name for name in names if name.startswith("CLAWDFORGE")] == ["CLAWDFORGE_TAG"]


@needs("bwrap")
def test_a_graph_behind_the_proxy_reaches_its_database(begin: Start) -> None:
    app = begin('network = "proxy"').app()
    session = app.session(agent="graph")
    for word in ("one", "two"):
        say(app, session, f"echo {word}")
    do(app, session, "undo")
    assert json.loads(say(app, session, "recall")) == ["echo one"]
    thief = app.session(agent="hostile")
    assert "onnection" in run_sql(app, thief, "own SELECT 1")  # not by itself, and the tunnel is the host's


def test_a_database_that_does_not_let_a_graph_in_is_one_sentence(
    begin: Start, database: GraphDatabase
) -> None:
    app = begin().app()
    session = app.session(agent="graph")
    database.run(f"ALTER ROLE {ROLE} NOLOGIN")
    try:
        failed = app.turn(session, "echo one").json()
    finally:
        database.run(f"ALTER ROLE {ROLE} LOGIN")
    assert "the database of this graph's checkpoints cannot be used" in failed["error"]
    assert "is not permitted to log in" in failed["error"]
    assert PASSWORD not in json.dumps(failed)
    assert say(app, session, "echo two") == "two"


def test_a_graph_starts_when_the_servers_database_was_put_back(begin: Start, database: GraphDatabase) -> None:
    app = begin().app()
    session = app.session(agent="graph")
    for word in ("one", "two"):
        say(app, session, f"echo {word}")
    database.run("UPDATE passes SET claim = 100")
    do(app, session, "undo")
    assert json.loads(say(app, session, "recall")) == ["echo one"]


def test_a_server_does_not_start_with_a_role_that_reaches_more(
    database: GraphDatabase, tmp_path: Path
) -> None:
    database.run(f"GRANT CONNECT ON DATABASE {database.main_name} TO PUBLIC")
    env = {**database.settings, "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "clawdforge", "serve", "--port", "0"]
    command += ["--data-dir", str(tmp_path / "data")]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert f'run `REVOKE CONNECT ON DATABASE "{database.main_name}" FROM PUBLIC;`' in done.stderr
    assert "Traceback" not in done.stderr
    command[3:] = ["doctor", "--data-dir", str(tmp_path / "data")]
    said = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False).stdout
    assert f"bad   graphs      the role {ROLE}" in said
