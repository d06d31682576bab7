"""A server whose rows are in Postgres keeps its word across restarts and outages, and says what is wrong."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from clawdforge.stores.postgres.link import Link
from tests.api.harness import ADMIN_TOKEN, Server, until
from tests.databases import in_file
from tests.needs import needs
from tests.postgres import Postgres, find_programs

pytestmark = needs("postgres")


@pytest.fixture
def url(postgres: Postgres) -> str:
    return postgres.make_database()


def ask(postgres: Postgres, *statements: str) -> None:
    with contextlib.closing(Link(postgres.url("postgres"))) as link:
        for statement in statements:
            link.run(statement)


def name_of(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[2]


def run(*arguments: str, url: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("CLAWDFORGE_")}
    env |= {"CLAWDFORGE_ADMIN_TOKEN": ADMIN_TOKEN, "CLAWDFORGE_DATABASE_URL": url}
    command = [sys.executable, "-m", "clawdforge", *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)


def answer(http: httpx2.Client, session: str, word: str) -> str:
    reply = http.post(f"/sessions/{session}/turn", json={"prompt": f"echo {word}"})
    assert reply.status_code == 200, reply.text
    return str(reply.json()["events"][0]["content"])


def refuse(data: Path, url: str) -> str:
    """What a server says that does not start."""
    found = run("serve", "--port", "0", "--data-dir", str(data), url=url)
    assert found.returncode == 1, found.stderr
    assert "Traceback" not in found.stderr
    return found.stderr.strip()


def test_sessions_outlive_the_server(start: Callable[..., Server], url: str) -> None:
    server = start(DATABASE_URL=url)
    app = server.app("first")
    session = app.session()
    assert answer(app.http, session, "one") == "one"
    server.stop()
    server.start()
    http = server.client(app.token)
    assert answer(http, session, "two") == "two"
    told = http.get(f"/sessions/{session}/messages").json()["messages"]
    assert [one["content"] for one in told] == ["echo one", "one", "echo two", "two"]
    assert http.post(f"/sessions/{session}/undo").status_code == 200
    assert len(http.get(f"/sessions/{session}/messages").json()["messages"]) == 2
    assert not (server.data_dir / "forge.db").exists()


def test_an_outage_is_told_and_waited_for(start: Callable[..., Server], postgres: Postgres, url: str) -> None:
    server = start(DATABASE_URL=url)
    app = server.app()
    session = app.session()
    app.turn(session, "echo one")
    name = name_of(url)
    ask(
        postgres,
        f"ALTER DATABASE {name} ALLOW_CONNECTIONS false",
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'",  # noqa: S608
    )
    until(lambda: app.http.get(f"/sessions/{session}").status_code == 503, "a read that fails")
    refused = app.turn(session, "echo lost")
    assert refused.status_code == 503, refused.text
    assert int(refused.headers["Retry-After"]) >= 1
    until(lambda: server.client().get("/readyz").status_code == 503, "the end of readiness")
    assert server.client().get("/healthz").status_code == 200
    ask(postgres, f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    until(lambda: server.client().get("/readyz").status_code == 200, "the store's return")
    assert answer(app.http, session, "two") == "two"


def test_what_is_wrong_with_an_address_is_said(postgres: Postgres, tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert 'database "nowhere" does not exist' in refuse(data, postgres.url("nowhere"))
    stranger = postgres.url("postgres").replace("//postgres@", "//stranger:hush-hush@")
    said = refuse(data, stranger)
    assert 'role "stranger" does not exist' in said
    assert "hush-hush" not in said
    assert "cannot be used" in refuse(data, "postgresql://forge@127.0.0.1:1/forge")
    for address in (
        "mysql://forge:hush-hush@127.0.0.1/forge",
        "postgresql://forge:hush-hush#x@127.0.0.1/forge",
    ):
        said = run("serve", url=address).stderr
        assert "give the address of a database" in said
        assert "hush" not in said
    for address in (
        "postgresql://forge:hush/hush@127.0.0.1/forge",
        "postgresql://forge@127.0.0.1:hush/forge",
    ):
        said = refuse(data, address)
        assert "the address cannot be read" in said
        assert "hush" not in said


def test_a_user_who_may_not_make_tables_is_told(postgres: Postgres, tmp_path: Path) -> None:
    empty = postgres.make_empty()
    ask(postgres, "CREATE ROLE reader LOGIN")
    said = refuse(tmp_path / "data", empty.replace("//postgres@", "//reader@"))
    assert "permission denied for schema public" in said


@in_file
def test_a_folder_with_sessions_of_its_own_is_left_alone(
    start: Callable[..., Server], postgres: Postgres, url: str
) -> None:
    server = start()
    app = server.app()
    app.turn(app.session(), "echo one")
    server.stop()
    assert "has the sessions of this data folder; move them" in refuse(server.data_dir, url)
    for file in server.data_dir.glob("forge.db*"):
        file.unlink()
    assert "the database is empty, but the data folder holds" in refuse(
        server.data_dir, postgres.make_empty()
    )


def test_the_doctor_knows_it_and_other_tools_say_whose_work_it_is(
    start: Callable[..., Server], url: str, tmp_path: Path
) -> None:
    server = start(DATABASE_URL=url)
    folder = ("--data-dir", str(server.data_dir))
    found = run("doctor", *folder, url=url)
    assert "ok    database    Postgres " in found.stdout
    assert "bad   database    fsync is off" in found.stdout  # as tests run it
    assert "forge.db" not in found.stdout
    missing = run("doctor", *folder, url=url.replace("/test", "/lacking"))
    assert "bad   database    it cannot be used" in missing.stdout
    for command in (["backup", str(tmp_path / "b.tar")], ["doctor", "--deep"]):
        refused = run(*command, *folder, url=url)
        assert refused.returncode != 0
        assert "pg_dump" in refused.stderr


def test_a_dump_brings_everything_back(
    start: Callable[..., Server], postgres: Postgres, url: str, tmp_path: Path
) -> None:
    """As the guide says: beside a server that runs, rows first, then folders."""
    server = start(DATABASE_URL=url)
    app = server.app()
    session = app.session()
    assert answer(app.http, session, "one") == "one"
    cut = app.http.post(f"/sessions/{session}/turns", json={"prompt": "echo begun\nsleep 60"}).json()
    until(lambda: "begun" in app.http.get(f"/sessions/{session}/events").text, "the turn's first words")
    dump, programs = tmp_path / "forge.dump", find_programs()
    subprocess.run([programs / "pg_dump", "--format=custom", f"--file={dump}", url], check=True)
    shutil.copytree(server.data_dir, tmp_path / "copied", ignore=shutil.ignore_patterns("*.sock"))
    server.stop(signal.SIGKILL)
    shutil.rmtree(server.data_dir)
    shutil.copytree(tmp_path / "copied", server.data_dir)
    empty = postgres.make_empty()
    subprocess.run([programs / "pg_restore", "--no-owner", f"--dbname={empty}", dump], check=True)
    server.use_database(empty)
    server.start()
    http = server.client(app.token)
    turns = http.get(f"/sessions/{session}/turns").json()["turns"]
    assert (turns[cut["turn_index"] - 1]["outcome"], len(turns)) == ("interrupted", 2)
    assert answer(http, session, "two") == "two"
    assert http.get("/search", params={"q": "one"}).json()["hits"]


def test_nothing_of_the_address_reaches_an_agent(start: Callable[..., Server], url: str) -> None:
    address = url.replace("//postgres@", "//postgres:hush-hush@")
    server = start(DATABASE_URL=address)
    app = server.app()
    env = app.turn(app.session(), "env").json()
    assert "hush-hush" not in str(env)
    assert "DATABASE_URL" not in str(env)
    server.stop()
    assert "hush-hush" not in server.log_text
    shutil.rmtree(server.data_dir)


def test_whoever_asks_for_life_waits_for_no_database(
    start: Callable[..., Server], postgres: Postgres, url: str
) -> None:
    """One that does not answer, and does not refuse either."""
    server = start(DATABASE_URL=url)
    assert server.client().get("/healthz").json()["open_sessions"] == 0
    name = name_of(url)
    with contextlib.closing(Link(postgres.url("postgres"))) as link:
        found = link.fetch("SELECT pid FROM pg_stat_activity WHERE datname = $1", (name,))
        for (pid,) in found:
            os.kill(pid, signal.SIGSTOP)
        try:
            assert server.client().get("/healthz").status_code == 200
        finally:
            for (pid,) in found:
                os.kill(pid, signal.SIGCONT)
