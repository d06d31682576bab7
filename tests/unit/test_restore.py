"""Restoring what hostile strangers made, and backups that can be restored."""

import contextlib
import gzip
import hashlib
import io
import json
import re
import shutil
import sqlite3
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from clawdforge.cli import main
from clawdforge.cli.commands import upkeep as commands
from clawdforge.core.clock import SystemClock
from clawdforge.drivers.folders.home_copies import Copies
from clawdforge.drivers.folders.home_manifest import Entry, Manifest
from clawdforge.stores import open_store
from clawdforge.stores.sqlite.snapshot import FAR, FILE
from clawdforge.upkeep import unpacking
from clawdforge.upkeep.archive import UpkeepError, create_archive, ignore_progress
from clawdforge.upkeep.backup import restore
from clawdforge.upkeep.unpacking import UnpackLimits
from tests.conformance.stores.samples import APP, a_session
from tests.unit.backups import back_up, make_data, one_workspace
from tests.unit.trees import count_descriptors

ODD = b"new\nline \xff".decode(errors="surrogateescape")


Member = tuple[str, bytes, str | bytes]
LINK, FILE_TYPE, FOLDER = tarfile.SYMTYPE, tarfile.REGTYPE, tarfile.DIRTYPE


def forge(
    source: Path, target: Path, *more: Member, shape: Callable[[tarfile.TarInfo], None] | None = None
) -> None:
    """A backup like `source`, with more members, all of them in its list of checksums."""
    with tarfile.open(source) as old, tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as new:
        manifest: dict[str, Any] = {}
        for member in old:
            data = old.extractfile(member)
            if member.name == "manifest.json":
                assert data is not None
                manifest = json.loads(data.read())
            else:
                new.addfile(member, data)
        for name, kind, content in more:
            info = tarfile.TarInfo(name)
            info.type = kind
            if isinstance(content, str):
                info.linkname = content
                new.addfile(info)
                continue
            info.size = len(content)
            if shape is not None:
                shape(info)
            digest = hashlib.sha256(content).hexdigest()
            manifest["members"][name] = {"size": len(content), "sha256": digest}
            new.addfile(info, io.BytesIO(content))
        body = json.dumps(manifest).encode()
        info = tarfile.TarInfo("manifest.json")
        info.size = len(body)
        new.addfile(info, io.BytesIO(body))


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    return await make_data(tmp_path)


@pytest.fixture
def workspace(data: Path) -> Iterator[Path]:
    with one_workspace(data) as folder:
        yield folder


@pytest.fixture
def good(data: Path, workspace: Path) -> Path:
    back_up(data, "good.tar")
    return workspace.parents[2] / "good.tar"


def refuse(archive: Path, match: str, limits: UnpackLimits | None = None) -> None:
    """It is refused, and nothing of it is left."""
    folder = archive.parent / "deep" / "er" / "new"
    before = sorted(path.name for path in archive.parent.iterdir())
    opened = count_descriptors()
    with pytest.raises(UpkeepError, match=match):
        restore(archive, folder, limits=limits)
    assert sorted(path.name for path in archive.parent.iterdir()) == before
    assert count_descriptors() == opened


def test_a_forged_archive_can_be_restored_at_all(good: Path, tmp_path: Path) -> None:
    """So that the tests below cannot pass because of how the archives are made."""
    forge(
        good, tmp_path / "bad.tar", ("workspaces/s9/file", FILE_TYPE, b"x"), ("workspaces/s9/l", LINK, "/etc")
    )
    restore(tmp_path / "bad.tar", tmp_path / "new")
    assert (tmp_path / "new/workspaces/s9/file").read_text() == "x"


OUT = "{outside}"


@pytest.mark.parametrize(
    "members",
    [
        pytest.param([("/etc/made", FILE_TYPE, b"x")], id="absolute"),
        pytest.param([("{outside}/made", FILE_TYPE, b"x")], id="absolute-outside"),
        pytest.param([("../made", FILE_TYPE, b"x")], id="above"),
        pytest.param([("workspaces/../../made", FILE_TYPE, b"x")], id="above-inside"),
        pytest.param(
            [("workspaces/s1/a", LINK, OUT), ("workspaces/s1/a/made", FILE_TYPE, b"x")], id="through-link"
        ),
        pytest.param(
            [("workspaces/s1/a", LINK, OUT), ("workspaces/s1/a/b", LINK, "x")], id="link-below-link"
        ),
        pytest.param(
            [("workspaces/s1/a", LINK, OUT), ("workspaces/s1/a/d", FOLDER, "")], id="folder-below-link"
        ),
        pytest.param(
            [("workspaces/s1/a", LINK, OUT), ("workspaces/s1/a", FILE_TYPE, b"x")], id="file-on-link"
        ),
        pytest.param([("workspaces/s1/a", LINK, OUT), ("workspaces/s1/a", LINK, "x")], id="link-on-link"),
        pytest.param([("workspaces/s8", LINK, OUT)], id="workspace-is-a-link"),
        pytest.param([("copies/s1", LINK, OUT)], id="link-among-copies"),
        pytest.param([("files/app/token", LINK, OUT)], id="link-among-uploads"),
        pytest.param([("homes/s1/file", FILE_TYPE, b"x")], id="a-home"),
        pytest.param([("server.lock", FILE_TYPE, b"x")], id="other-file"),
        pytest.param([("forge.db-wal", FILE_TYPE, b"x")], id="a-journal"),
        pytest.param([("forge.db", FILE_TYPE, b"x")], id="twice"),
        pytest.param([("workspaces/s1/kept", FILE_TYPE, b"x")], id="file-twice"),
        pytest.param([("workspaces/s1/kept/x", FILE_TYPE, b"x")], id="below-a-file"),
        pytest.param([("workspaces/s1/hard", tarfile.LNKTYPE, "workspaces/s1/kept")], id="hard-link"),
        pytest.param([("workspaces/s1/hard", tarfile.LNKTYPE, "/etc/passwd")], id="hard-link-out"),
        pytest.param([("workspaces/s1/fifo", tarfile.FIFOTYPE, "")], id="fifo"),
        pytest.param([("workspaces/s1/dev", tarfile.CHRTYPE, "")], id="device"),
        pytest.param([("workspaces/s1/dev", tarfile.BLKTYPE, "")], id="block-device"),
        pytest.param([("workspaces/s1/x", tarfile.CONTTYPE, b"x")], id="odd-type"),
        pytest.param([("workspaces/s1/" + "d/" * 400 + "x", FILE_TYPE, b"x")], id="deep"),
        pytest.param([("workspaces/s1/a//b", FILE_TYPE, b"x")], id="empty-name"),
        pytest.param([("workspaces/./s1/b", FILE_TYPE, b"x")], id="dot"),
    ],
)
def test_an_archive_that_no_backup_made_is_refused_and_leaves_nothing(
    good: Path, tmp_path: Path, members: list[Member]
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()

    def fill(text: str | bytes) -> Any:
        return text.format(outside=outside) if isinstance(text, str) else text

    forge(good, tmp_path / "bad.tar", *((fill(name), kind, fill(content)) for name, kind, content in members))
    refuse(tmp_path / "bad.tar", "refused|cannot be unpacked|could not be restored")
    assert list(outside.iterdir()) == []
    assert not (tmp_path / "made").exists()


def test_an_archive_that_bursts_is_refused(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "FREE_BYTES", 1 << 20)
    forge(
        good, tmp_path / "zeros.tar", *((f"workspaces/s1/{n}", FILE_TYPE, bytes(4 << 20)) for n in range(4))
    )
    (tmp_path / "bomb.tar.gz").write_bytes(gzip.compress((tmp_path / "zeros.tar").read_bytes()))
    refuse(tmp_path / "bomb.tar.gz", "times its size.*--max-ratio")
    refuse(
        tmp_path / "bomb.tar.gz", "more than 9000000 bytes.*--max-bytes", UnpackLimits(9_000_000, ratio=5000)
    )
    refuse(tmp_path / "zeros.tar", "more than 6 files.*--max-files", UnpackLimits(entries=6))
    restore(tmp_path / "bomb.tar.gz", tmp_path / "new", limits=UnpackLimits(ratio=5000))


@pytest.mark.parametrize("list_bytes", [unpacking.LIST_BYTES, 0])
def test_a_backup_knows_how_many_files_a_restore_must_allow(
    data: Path, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, list_bytes: int
) -> None:
    """Whether it has too many, or their list is too long."""
    monkeypatch.setattr(unpacking, "LIST_BYTES", list_bytes)
    (workspace / ("long" * 50)).mkdir()
    for number in range(9):
        (workspace / ("long" * 50) / f"{number}{'name' * 50}").write_text("x")
    (workspace / "link").symlink_to("kept")
    made = back_up(data)
    with tarfile.open(tmp_path / "copy.tar") as tar:
        assert (made.needs_files == len(tar.getmembers())) == (list_bytes > 0)
    refuse(tmp_path / "copy.tar", "--max-files", UnpackLimits(entries=made.needs_files - 1))
    restore(tmp_path / "copy.tar", tmp_path / "new", limits=UnpackLimits(entries=made.needs_files))


def test_the_commands_take_many_files_when_they_are_told_to(
    data: Path, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(9):
        (workspace / str(number)).write_text("x")
    file, new = str(tmp_path / "copy.tar"), str(tmp_path / "new")
    monkeypatch.setattr(commands, "MAX_FILES", 9)
    made = CliRunner().invoke(main, ["backup", file, "--data-dir", str(data)])
    told = re.search(r"--max-files (\d+)", made.output)
    assert (made.exit_code, told is not None) == (8, True)
    assert told is not None
    few = CliRunner().invoke(main, ["restore", file, "--data-dir", new, "--max-files", "9"])
    assert (few.exit_code, "--max-files" in few.output) == (1, True)
    done = CliRunner().invoke(main, ["restore", file, "--data-dir", new, "--max-files", told[1]])
    assert done.exit_code == 0, done.output


def test_a_header_that_claims_any_length_is_not_read_into_memory(tmp_path: Path) -> None:
    info = tarfile.TarInfo("PaxHeaders/x")
    info.type, info.size = tarfile.XHDTYPE, 4 << 30
    head = info.tobuf(tarfile.USTAR_FORMAT)
    with gzip.open(tmp_path / "long.tar.gz", "wb", compresslevel=1) as file:
        file.write(head)
        for _ in range(64):
            file.write(bytes(1 << 20))
    refuse(tmp_path / "long.tar.gz", "a header in it is longer")
    info.type, info.size = tarfile.REGTYPE, -(1 << 40)
    (tmp_path / "below.tar").write_bytes(info.tobuf(tarfile.GNU_FORMAT).ljust(10240, b"\0"))
    refuse(tmp_path / "below.tar", "refused|not a complete backup")
    (tmp_path / "chain.tar").write_bytes(_endless_chain())
    refuse(tmp_path / "chain.tar", "refused|not a complete backup")


def _endless_chain() -> bytes:
    """Header after header, each of which only says something about the next."""
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 12
    return (info.tobuf(tarfile.USTAR_FORMAT) + b"12 comment=\n".ljust(512, b"\0")) * 5000


@pytest.mark.parametrize(
    "pax", [{"GNU.sparse.size": "99999999999", "GNU.sparse.map": "0,1"}, {"mtime": "nan"}]
)
def test_odd_words_about_a_file_do_no_harm(good: Path, tmp_path: Path, pax: dict[str, str]) -> None:
    def shape(info: tarfile.TarInfo) -> None:
        info.pax_headers = pax

    forge(good, tmp_path / "bad.tar", ("workspaces/s1/x", FILE_TYPE, b"x"), shape=shape)
    if "mtime" in pax:
        restore(tmp_path / "bad.tar", tmp_path / "new")
        assert (tmp_path / "new/workspaces/s1/x").read_text() == "x"
    else:
        refuse(tmp_path / "bad.tar", "refused")


@pytest.mark.parametrize(
    "manifest",
    [
        b"",
        b"[]",
        b'{"format": 1}',
        b'{"format": 1, "members": []}',
        b"[" * 200_000,
        b'{"format": 2, "members": {}}',
    ],
)
def test_a_broken_list_of_files_is_refused(tmp_path: Path, manifest: bytes) -> None:
    with tarfile.open(tmp_path / "bad.tar", "w") as new:
        info = tarfile.TarInfo("manifest.json")
        info.size = len(manifest)
        new.addfile(info, io.BytesIO(manifest))
    refuse(tmp_path / "bad.tar", "use another")


ROWS = {
    "files": "(app_name, file_token, name, size, created_at, path) VALUES ('a', 't', 'n', 1, 1, ?)",
    "workspaces": "(session_id, app_name, agent, created_at, updated_at, own_cwd, cwd)"
    " VALUES ('s', 'a', 'demo', 1, 1, 1, ?)",
}


def insert_own(database: sqlite3.Connection, kind: str, path: str) -> None:
    """A row that says that the path is the server's own."""
    table = "sessions" if kind == "workspaces" else kind
    database.execute(f"INSERT INTO {table} {ROWS[kind]}", (path,))


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("place", ["/etc/passwd", "{data}/admin.token", "{data}/{kind}/../admin.token"])
def test_a_database_that_claims_files_of_others_is_refused(
    data: Path, tmp_path: Path, kind: str, place: str
) -> None:
    """Agents are given uploads and workspaces, so they must be none of the server's secrets."""
    for name, path in (("bad", place.format(data=data, kind=kind)), ("fine", f"{data}/{kind}/a/t")):
        copy = tmp_path / name
        shutil.copytree(data, copy)
        with contextlib.closing(sqlite3.connect(copy / FILE)) as database, database:
            insert_own(database, kind, path)
        with create_archive(tmp_path / f"{name}.tar", ignore_progress) as archive:
            archive.add_file(FILE, copy / FILE)
            archive.finish({"data_dir": str(data), "plans": {}, "lost_files": []})
    refuse(tmp_path / "bad.tar", "its database names")
    restore(tmp_path / "fine.tar", tmp_path / "new")


@pytest.mark.parametrize("app", ["a", "files"])
def test_a_folder_that_was_moved_is_backed_up_before_a_server_ran_there(
    data: Path, tmp_path: Path, app: str
) -> None:
    """Its database still names the old place, and an app may be called like one of our folders."""
    with contextlib.closing(sqlite3.connect(data / FILE)) as database, database:
        insert_own(database, "files", f"{data}/files/{app}/t")
        insert_own(database, "workspaces", f"{data}/workspaces/s")
    for path in (f"files/{app}/t", "workspaces/s/note"):
        (data / path).parent.mkdir(parents=True)
        (data / path).write_text("words")
    moved = data.rename(tmp_path / "moved")
    made = back_up(moved)
    assert (made.files, made.left_out) == (1, {})
    restore(tmp_path / "copy.tar", new := tmp_path / "new")
    with contextlib.closing(sqlite3.connect(new / FILE)) as database:
        (upload,) = database.execute("SELECT path FROM files").fetchone()
        (cwd,) = database.execute("SELECT cwd FROM sessions").fetchone()
    assert (upload, cwd) == (f"{new}/files/{app}/t", f"{new}/workspaces/s")
    assert Path(upload).read_text() == (Path(cwd) / "note").read_text() == "words"


@pytest.mark.parametrize("kind", ROWS)
def test_a_backup_that_no_restore_would_take_is_not_made(data: Path, tmp_path: Path, kind: str) -> None:
    with contextlib.closing(sqlite3.connect(data / FILE)) as database, database:
        insert_own(database, kind, "/etc/passwd")
    with pytest.raises(UpkeepError, match="names '/etc/passwd' as its own"):
        back_up(data)
    assert not (tmp_path / "copy.tar").exists()


def test_a_copy_of_a_home_that_a_stranger_made_reaches_no_other_file(tmp_path: Path) -> None:
    """Its objects and paths come from the archive; what they name must be its own."""
    (tmp_path / "secret").write_text("CANARY")
    (tmp_path / "copies" / "files").mkdir(parents=True)
    copies = Copies(tmp_path / "copies", max_copies=5, max_bytes=1 << 20, excluded=())
    crc = zlib.crc32(b"CANARY")
    entries = [
        Entry("stolen", "f", mode=0o600, size=6, object="../../secret", crc=crc),
        Entry("../planted", "d", mode=0o700),
        Entry("/planted", "l", target="x"),
        Entry("a/../../planted", "l", target="x"),
        Entry("odd", "f", mode="rw", object="0123456789ab-0"),  # type: ignore[arg-type]
        Entry("odd", "p"),
        Entry("d/" * 100 + "d", "d", mode=0o700),
    ]
    for number, entry in enumerate(entries):
        target = tmp_path / f"home{number}"
        assert not copies.build(Manifest(1, "a", 1, (entry,)), target)
        assert list(target.iterdir()) == []
    assert copies.build(Manifest(1, "a", 1, (Entry("fine", "d", mode=0o700),)), tmp_path / "home")


async def test_every_reader_of_changes_is_told_to_begin_anew(tmp_path: Path) -> None:
    """A restored server that had counted past a reader's cursor went on as if nothing had happened."""
    data = await make_data(tmp_path)
    store = await open_store(data, SystemClock())
    await store.write(APP, lambda tx: tx.add_session(a_session()))
    await store.close()
    back_up(data)
    restore(tmp_path / "copy.tar", tmp_path / "new")
    store = await open_store(tmp_path / "new", SystemClock())
    try:
        bounds = await store.read(APP, lambda view: view.change_bounds())
    finally:
        await store.close()
    assert bounds.forgotten == bounds.last >= FAR
