"""`clawdforge migrate --from-sqlite`: whatever a server said before the move, it says after it."""

import contextlib
import signal
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.stores.postgres.link import Link
from clawdforge.upkeep.archive import UpkeepError
from clawdforge.upkeep.moving import move_to_postgres
from tests.api.harness import App, Server
from tests.api.test_postgres import run
from tests.databases import in_file
from tests.needs import needs
from tests.postgres import Postgres

pytestmark = [needs("postgres"), in_file]
ASKED = (
    "/sessions?limit=100",
    "/usage?by=agent",
    "/budgets",
    "/schedules",
    "/personas",
    "/search?q=remember",
)
OF_SESSION = ("", "/messages?limit=1000", "/events?limit=1000&after=0", "/turns?limit=100")


def fill(app: App) -> list[str]:
    """Sessions with all that a row can hold: long prompts, NUL, what was undone, forks, files, plans."""
    first, second = app.session(title="first"), app.session()
    app.turn(first, "echo remember the milk")
    app.turn(first, "echo a NUL \u0000 and \ufdd0 and \U0001f600")
    app.turn(first, "echo " + "a long prompt " * 3000)
    app.turn(first, "echo one too many")
    assert app.http.post(f"/sessions/{first}/undo").status_code == 200
    fork = app.http.post(f"/sessions/{first}/fork", json={}).json()["session_id"]
    app.turn(second, "tool read a.txt")
    app.turn(second, "fail the model is on fire")
    made = [
        app.http.post("/files", files={"file": ("a.txt", b"remember this too")}),
        app.http.put("/budgets", json={"period": "month", "max_tokens": 1_000_000}),
        app.http.post("/schedules", json={"cron": "0 9 * * MON", "prompt": "echo morning"}),
        app.http.put("/personas/poet", json={"agent": "claude", "instructions": "Rhyme."}),
    ]
    assert [reply.status_code for reply in made] == [200] * 4, [reply.text for reply in made]
    return [first, second, str(fork)]


def ask_all(http: Any, sessions: list[str]) -> dict[str, Any]:
    paths = [*ASKED, *(f"/sessions/{one}{path}" for one in sessions for path in OF_SESSION)]
    replies = {path: http.get(path) for path in paths}
    assert {path: one.status_code for path, one in replies.items() if one.status_code != 200} == {}
    return {path: one.json() for path, one in replies.items()}


def test_everything_is_as_it_was(start: Callable[..., Server], postgres: Postgres) -> None:
    server = start()
    app = server.app("mover")
    sessions = fill(app)
    before = ask_all(app.http, sessions)
    server.stop()
    url = postgres.make_empty()
    done = run("migrate", "--from-sqlite", "--data-dir", str(server.data_dir), url=url)
    assert done.returncode == 0, done.stderr
    assert "rows moved and compared" in done.stdout
    assert (server.data_dir / "forge.db.moved").exists()
    with contextlib.closing(Link(url)) as link:
        counts = link.fetch(
            "SELECT max(last), max(number) FROM change_counts"
            " JOIN app_changes USING (app_name) GROUP BY app_name"
        )
    assert counts
    assert all(last == number for last, number in counts), "what comes next has a number of its own"
    server._env["CLAWDFORGE_DATABASE_URL"] = url
    server.start()
    http = server.client(app.token)
    after = ask_all(http, sessions)
    for path, said in before.items():
        assert after[path] == said, path
    assert http.post(f"/sessions/{sessions[0]}/redo").status_code == 200
    told = http.post(f"/sessions/{sessions[0]}/turn", json={"prompt": "echo later"}).json()
    assert told["events"][0]["content"] == "later"
    assert server.admin().get("/admin/audit/verify").json()["ok"] is True
    again = run("migrate", "--data-dir", str(server.data_dir), url=url)
    assert again.returncode != 0  # a server runs
    server.stop()
    assert run("migrate", "--data-dir", str(server.data_dir), url=url).stdout.endswith("up to date\n")


def make_rows(start: Callable[..., Server]) -> Path:
    server = start()
    app = server.app()
    app.turn(app.session(), "echo remember")
    server.stop()
    return server.data_dir


def count(url: str, table: str) -> int:
    with contextlib.closing(Link(url)) as link:
        ((found,),) = link.fetch(f"SELECT count(*) FROM {table}")  # noqa: S608 - a name of ours
        return int(found)


def test_a_row_that_came_out_otherwise_undoes_it_all(
    start: Callable[..., Server], postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, url = make_rows(start), postgres.make_empty()
    copy = Link.copy

    def lose_a_letter(link: Link, table: str, columns: Any, rows: Any) -> None:
        if table == "messages":
            rows = [tuple(v.replace("mem", "men") if isinstance(v, str) else v for v in row) for row in rows]
        copy(link, table, columns, rows)

    monkeypatch.setattr(Link, "copy", lose_a_letter)
    with pytest.raises(UpkeepError, match="the rows of messages are not the same"):
        move_to_postgres(data, url, SystemClock())
    assert (data / "forge.db").exists()
    assert count(url, "sessions") == count(url, "messages") == 0


def test_what_cannot_be_moved_is_said(
    start: Callable[..., Server], postgres: Postgres, tmp_path: Path
) -> None:
    data, url = make_rows(start), postgres.make_empty()

    def refuse(folder: Path, address: str) -> str:
        done: subprocess.CompletedProcess[str] = run(
            "migrate", "--from-sqlite", "--data-dir", str(folder), url=address
        )
        assert done.returncode != 0
        assert "Traceback" not in done.stderr
        return done.stderr

    assert "there is no database in" in refuse(tmp_path / "nothing", url)
    assert "Postgres cannot be used" in refuse(data, postgres.url("nowhere"))
    with contextlib.closing(sqlite3.connect(data / "forge.db")) as db:
        db.execute("PRAGMA user_version = 20")
        db.commit()
    assert "is of another version" in refuse(data, url)
    other = make_rows(start)
    move_to_postgres(other, url, SystemClock())
    third = make_rows(start)
    assert "holds other sessions or apps already" in refuse(third, url)


def test_a_move_that_was_cut_off_at_its_end_is_ended_by_the_same_command(
    start: Callable[..., Server], postgres: Postgres
) -> None:
    data, url = make_rows(start), postgres.make_empty()
    moved = move_to_postgres(data, url, SystemClock())
    (data / "forge.db.moved").rename(data / "forge.db")  # as a crash before the renaming leaves it
    assert move_to_postgres(data, url, SystemClock()) == moved
    assert not (data / "forge.db").exists()


def test_what_a_killed_server_left_in_its_log_is_moved_and_kept(
    start: Callable[..., Server], postgres: Postgres
) -> None:
    server = start()
    app = server.app()
    app.turn(app.session(), "echo remember")
    server.stop(signal.SIGKILL)
    url = postgres.make_empty()
    move_to_postgres(server.data_dir, url, SystemClock())
    assert count(url, "messages") == 2
    with contextlib.closing(sqlite3.connect(server.data_dir / "forge.db.moved")) as db:
        assert db.execute("SELECT count(*) FROM messages").fetchone() == (2,)
    assert sorted(path.name for path in server.data_dir.glob("forge.db*")) == ["forge.db.moved"]


def test_tables_are_not_made_for_a_folder_whose_database_is_lost(
    start: Callable[..., Server], postgres: Postgres
) -> None:
    data, url = make_rows(start), postgres.make_empty()
    for file in data.glob("forge.db*"):
        file.unlink()
    refused = run("migrate", "--data-dir", str(data), url=url)
    assert "the database is empty, but the data folder holds" in refused.stderr
    with contextlib.closing(Link(url)) as link:
        assert link.fetch("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == [(0,)]


def test_a_folder_that_was_moved_finds_its_workspaces(
    start: Callable[..., Server], postgres: Postgres, tmp_path: Path
) -> None:
    url = postgres.make_database()
    server = start(DATABASE_URL=url)
    app = server.app()
    session = app.session()
    app.turn(session, "echo one")
    server.stop()
    server.data_dir.rename(tmp_path / "elsewhere")
    server.data_dir = tmp_path / "elsewhere"
    server.start()
    told = server.client(app.token).get(f"/sessions/{session}").json()
    assert told["cwd"].startswith(str(tmp_path / "elsewhere" / "workspaces"))
