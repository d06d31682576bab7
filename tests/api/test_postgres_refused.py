"""A database that cannot be used is named with what to do about it, by the server and by the doctor."""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clawdforge.stores.postgres.examination import examine_database
from clawdforge.stores.postgres.link import SETTINGS, Link
from tests.api.harness import Server, until
from tests.api.test_postgres import ask, name_of, refuse, run
from tests.needs import needs
from tests.postgres import Postgres, find_programs
from tests.support.pooler import Pooler

pytestmark = needs("postgres")


@pytest.fixture
def url(postgres: Postgres) -> str:
    return postgres.make_database()


@pytest.fixture(scope="module")
def walled(postgres: Postgres) -> str:
    """A user who has to say a password."""
    ask(postgres, "CREATE ROLE walled LOGIN PASSWORD 'right'")
    rules = postgres.folder / "data" / "pg_hba.conf"
    rules.write_text(f"local all walled scram-sha-256\n{rules.read_text()}")
    ask(postgres, "SELECT pg_reload_conf()")
    return "walled"


def edit(url: str, *statements: str) -> None:
    with contextlib.closing(Link(url)) as link:
        for statement in statements:
            link.run(statement)


def examine(data: Path, url: str) -> str:
    """What the doctor says of the database."""
    said = run("doctor", "--data-dir", str(data), url=url).stdout
    return "\n".join(re.findall(r"^.* database .*(?:\n +→.*)?$", said, re.MULTILINE))


def test_a_wrong_password(url: str, walled: str, tmp_path: Path) -> None:
    said = refuse(tmp_path / "data", url.replace("//postgres@", f"//{walled}:wrong-one@"))
    assert "password authentication failed" in said
    assert "correct the user and the password in CLAWDFORGE_DATABASE_URL" in said
    assert "wrong-one" not in said


def test_one_that_can_only_be_read(postgres: Postgres, url: str, tmp_path: Path) -> None:
    ask(postgres, f"ALTER DATABASE {name_of(url)} SET default_transaction_read_only = on")
    assert "name the primary server, or set default_transaction_read_only" in refuse(tmp_path / "data", url)
    assert "bad   database    it can only be read" in examine(tmp_path / "data", url)


def test_tables_of_a_newer_program(url: str, tmp_path: Path) -> None:
    edit(url, "INSERT INTO schema_migrations VALUES (999, 'later', 1)")
    assert "written by a newer clawdforge; install that version" in refuse(tmp_path / "data", url)
    assert "schema 999 is newer" in examine(tmp_path / "data", url)


def test_a_user_who_may_not_write_the_tables(postgres: Postgres, url: str, tmp_path: Path) -> None:
    ask(postgres, "CREATE ROLE guest LOGIN")
    edit(url, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO guest")
    as_guest = url.replace("//postgres@", "//guest@")
    said = refuse(tmp_path / "data", as_guest)
    assert "permission denied for table schema_lock; give its user the rights" in said
    assert "its user may not read and write" in examine(tmp_path / "data", as_guest)


@pytest.fixture
def pooler(postgres: Postgres, tmp_path: Path) -> Iterator[Callable[..., Pooler]]:
    with contextlib.ExitStack() as stack:

        def put(**loses: object) -> Pooler:
            (folder := tmp_path / "pooler").mkdir()
            made = Pooler(postgres, folder, **loses)  # type: ignore[arg-type] # as it says itself
            stack.callback(made.close)
            return made

        yield put


def test_a_postgres_that_is_too_old(pooler: Callable[..., Pooler], url: str, tmp_path: Path) -> None:
    old = pooler(version="15.4").fit(url)
    assert "this is Postgres 15, but 17 or newer is needed; upgrade it" in refuse(tmp_path / "data", old)
    assert "this is Postgres 15" in examine(tmp_path / "data", old)


@needs("openssl")
def test_a_certificate_is_compared(
    start: Callable[..., Server], pooler: Callable[..., Pooler], url: str, tmp_path: Path
) -> None:
    own, strange = (make_certificate(tmp_path / name) for name in ("own.pem", "strange.pem"))
    address = pooler(certificate=own).fit(url)
    said = refuse(tmp_path / "data", f"{address}?sslmode=verify-full&sslrootcert={strange}")
    assert "certificate verify failed" in said
    assert "name the certificate of who has signed its own with `sslrootcert=`" in said
    server = start(DATABASE_URL=f"{address}?sslmode=verify-full&sslrootcert={own}")
    app = server.app()
    assert app.turn(app.session(), "echo hidden").status_code == 200
    server.stop()


def make_certificate(path: Path) -> Path:
    """For this machine, signed by itself."""
    names = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    command = ["openssl", "req", "-x509", *key, *names, "-keyout", str(path), "-out", f"{path}.crt"]
    subprocess.run(command, check=True, capture_output=True)
    path.write_text(path.read_text() + Path(f"{path}.crt").read_text())
    return path


def test_a_pooler_that_drops_what_keeps_commits_safe(
    pooler: Callable[..., Pooler], url: str, tmp_path: Path
) -> None:
    dropped = pooler(loses_settings=True).fit(url)
    for said in (refuse(tmp_path / "data", dropped), examine(tmp_path / "data", dropped)):
        assert "settings that the server makes for its connections do not reach Postgres" in said


IGNORED = ", ".join(
    ["extra_float_digits", "idle_in_transaction_session_timeout", *(SETTINGS.keys() - {"application_name"})]
)
BOUNCER = """
[databases]
* = host={postgres} user=postgres
[pgbouncer]
pool_mode = {mode}
listen_addr =
unix_socket_dir = {folder}
listen_port = 5432
auth_type = any
auth_file = {folder}/users
ignore_startup_parameters = {settings}
"""


@contextlib.contextmanager
def run_pgbouncer(postgres: Postgres, mode: str) -> Iterator[Callable[[str], str]]:
    """A real one. It fits the address of a database."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)  # it does not run as root
        (folder / "users").write_text('"postgres" ""\n')
        config = BOUNCER.format(postgres=postgres.folder, mode=mode, folder=folder, settings=IGNORED)
        (folder / "config").write_text(config)
        path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"
        user = ("-u", "nobody") if os.getuid() == 0 else ()
        process = subprocess.Popen(
            [str(shutil.which("pgbouncer", path=path)), "-q", *user, folder / "config"],
            stderr=subprocess.DEVNULL,
        )
        try:
            until((folder / ".s.PGSQL.5432").exists, "the pooler's start")
            yield lambda url: url.replace(str(postgres.folder), name)
        finally:
            process.terminate()
            process.wait(10)


@needs("pgbouncer")
def test_pgbouncer_that_gives_out_connections_for_a_transaction(
    postgres: Postgres, url: str, tmp_path: Path
) -> None:
    with run_pgbouncer(postgres, "transaction") as fit:
        assert "settings that the server makes" in refuse(tmp_path / "data", fit(url))
        ask(postgres, f"ALTER DATABASE {name_of(url)} SET idle_in_transaction_session_timeout = '5s'")
        for said in (refuse(tmp_path / "data", fit(url)), examine(tmp_path / "data", fit(url))):
            assert "a pooler in between gives out connections for a transaction only" in said


@needs("pgbouncer")
def test_pgbouncer_that_gives_them_out_for_a_session(
    start: Callable[..., Server], postgres: Postgres, url: str
) -> None:
    ask(postgres, f"ALTER DATABASE {name_of(url)} SET idle_in_transaction_session_timeout = '5s'")
    with run_pgbouncer(postgres, "session") as fit:
        server = start(DATABASE_URL=fit(url))
        app = server.app()
        session = app.session()
        assert [app.turn(session, "echo on").status_code for _ in range(3)] == [200] * 3
        assert "do not arrive" not in server.log_text
        server.stop()


@pytest.mark.parametrize("whose", ["DATABASE {name}", "ROLE sloppy", "ROLE sloppy IN DATABASE {name}"])
def test_the_doctor_finds_commits_that_wait_for_nothing(
    postgres: Postgres, url: str, tmp_path: Path, whose: str
) -> None:
    """The server turns them on for itself, so it starts."""
    ask(postgres, "DROP ROLE IF EXISTS sloppy", "CREATE ROLE sloppy LOGIN SUPERUSER")
    ask(postgres, f"ALTER {whose.format(name=name_of(url))} SET synchronous_commit = off")
    said = examine(tmp_path / "data", url.replace("//postgres@", "//sloppy@"))
    assert "warn  database    synchronous_commit is off" in said
    ask(postgres, f"ALTER {whose.format(name=name_of(url))} RESET synchronous_commit")
    assert "synchronous_commit" not in examine(tmp_path / "data", url.replace("//postgres@", "//sloppy@"))


def test_the_doctor_refuses_such_commits_in_the_servers_own_connections(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As behind a pooler that drops what a server sets."""
    monkeypatch.setitem(SETTINGS, "synchronous_commit", "off")
    bad = [remark.text for remark in examine_database(url) if remark.level == "bad"]
    assert len(bad) == 1
    assert bad[0].startswith("settings that the server makes for its connections do not reach Postgres")


def test_the_doctor_finds_a_standby_that_is_behind(postgres: Postgres, url: str, tmp_path: Path) -> None:
    """What receives the log and says so only now and then is one, to Postgres."""
    (folder := tmp_path / "log").mkdir()
    command = [str(find_programs() / "pg_receivewal"), f"--directory={folder}", f"--host={postgres.folder}"]
    with subprocess.Popen([*command, "--username=postgres"], stderr=subprocess.DEVNULL) as standby:
        try:
            sql = "SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'"
            with contextlib.closing(Link(url)) as link:
                until(lambda: link.fetch(sql), "the standby's beginning")
            assert "warn  database    1 of its standbys are asynchronous" in examine(tmp_path / "data", url)
        finally:
            standby.terminate()


def test_a_user_with_the_rights_of_the_guide_and_no_others(
    start: Callable[..., Server], postgres: Postgres, tmp_path: Path
) -> None:
    """The owner makes the tables; the server's user may use them, and make none."""
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "postgres.md").read_text()
    grants = re.findall(r"^(?:GRANT|ALTER DEFAULT|REVOKE) .*;$", guide, re.MULTILINE)
    assert grants
    url = postgres.make_empty()
    ask(postgres, "CREATE ROLE forge_owner LOGIN", "CREATE ROLE forge LOGIN")
    ask(postgres, f"ALTER DATABASE {name_of(url)} OWNER TO forge_owner")
    owner, user = (url.replace("//postgres@", f"//{name}@") for name in ("forge_owner", "forge"))
    assert "permission denied for schema public" in refuse(tmp_path / "early", user)
    edit(owner, *(grant.replace(" forge ", f" {name_of(url)} ", 1) for grant in grants))
    done = run("migrate", "--data-dir", str(tmp_path / "data0"), url=owner)
    assert done.returncode == 0, done.stderr
    server = start(DATABASE_URL=user)
    app = server.app()
    session = app.session()
    assert app.turn(session, "echo one").status_code == 200
    assert app.http.get("/search", params={"q": "one"}).json()["hits"]
    assert app.http.delete(f"/sessions/{session}").status_code == 200
    assert server.admin().post("/admin/sweep").status_code == 200
    with contextlib.closing(Link(user)) as link, pytest.raises(Exception, match="permission denied"):
        link.run("CREATE TABLE mine (a int)")
