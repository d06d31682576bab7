"""Uploads between the disk and the store: whatever fails, there is a row exactly where there is a file."""

import asyncio
import contextlib
import os
import resource
import subprocess
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.rows import AppRow, FileRow
from clawdforge.core.running.carried_uploads import CarriedUploads
from clawdforge.core.services.files import FileService
from clawdforge.stores import open_store
from clawdforge.stores.sqlite.store import SqliteStore
from clawdforge.stores.uploads import UploadFolder
from clawdforge.wire.errors import FileNotFound, FileTooLarge, LimitExceeded, Stopping, StoreUnavailable
from tests.needs import needs

APP = "app"
MIB = 1024 * 1024


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await open_store(tmp_path, SystemClock())
    await opened.write_system(lambda tx: tx.put_app(AppRow(app_name=APP, created_at=1)))
    yield opened
    await opened.close()


@pytest.fixture
def files(store: SqliteStore, tmp_path: Path) -> FileService:
    return service(store, tmp_path)


def service(store: SqliteStore, folder: Path, max_bytes: int = 64 * MIB) -> FileService:
    uploads = UploadFolder(folder)
    return FileService(store, SystemClock(), uploads, CarriedUploads(uploads, None), max_bytes)


async def pieces(*data: bytes) -> AsyncIterator[bytes]:
    for piece in data:
        yield piece


def on_disk(folder: Path) -> list[str]:
    return sorted(
        str(path.relative_to(folder / "files")) for path in (folder / "files").rglob("*") if path.is_file()
    )


def content_of(row: FileRow) -> bytes:
    return Path(row.path).read_bytes()


async def limit(store: SqliteStore, max_bytes: int) -> None:
    row = AppRow(app_name=APP, created_at=1, max_bytes=max_bytes)
    await store.write_system(lambda tx: tx.put_app(row))


async def known(store: SqliteStore, token: str) -> FileRow | None:
    return await store.read(APP, lambda view: view.file(token))


async def test_a_start_finishes_what_a_crash_left(
    files: FileService, store: SqliteStore, tmp_path: Path
) -> None:
    uploads = UploadFolder(tmp_path)
    settled = (await files.add(APP, "a", pieces(b"settled"))).file_token
    recorded = (await files.add(APP, "b", pieces(b"recorded"))).file_token
    removed = (await files.add(APP, "c", pieces(b"removed"))).file_token
    # As a crash leaves them: the row was written and not yet the name; the row was removed, or not even that.
    await uploads.take_out(APP, recorded)
    await uploads.take_out(APP, removed)
    await store.write(APP, lambda tx: tx.remove_file(removed))
    half = await uploads.create(APP, "ff_half")
    await half.write(b"half")
    await half.seal()
    assert await files.finish_pending() == 3
    assert on_disk(tmp_path) == sorted(f"{APP}/{token}" for token in (settled, recorded))
    for token, content in ((settled, b"settled"), (recorded, b"recorded")):
        row, file = await files.open(APP, token)
        with file:
            assert file.read() == content
        assert content_of(row) == content
    assert await files.finish_pending() == 0


@contextlib.contextmanager
def no_file_larger_than(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_disk_that_fails_leaves_nothing(
    files: FileService, store: SqliteStore, tmp_path: Path
) -> None:
    with no_file_larger_than(32 * MIB), pytest.raises(StoreUnavailable, match="disk failed"):
        await files.add(APP, "a", pieces(*[b"x" * 8 * MIB] * 6))
    assert on_disk(tmp_path) == []
    assert await store.read(APP, lambda view: sum(view.stored_bytes().values())) == 0
    await files.add(APP, "a", pieces(b"x"))


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A disk of 2 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@needs("tmpfs")
async def test_a_full_disk_leaves_nothing(store: SqliteStore, small: Path) -> None:
    files = service(store, small)
    with pytest.raises(StoreUnavailable, match="disk is full") as refused:
        await files.add(APP, "a", pieces(*[b"x" * MIB] * 6))
    assert refused.value.retry_after is not None
    assert on_disk(small) == []
    row = await files.add(APP, "a", pieces(b"x" * MIB))
    assert on_disk(small) == [f"{APP}/{row.file_token}"]


async def test_a_store_that_does_not_take_the_row_leaves_no_file_in_place(
    files: FileService, store: SqliteStore, tmp_path: Path
) -> None:
    async def closing() -> AsyncIterator[bytes]:
        yield b"x"
        await store.close()

    with pytest.raises(Stopping):
        await files.add(APP, "a", closing())
    assert all(path.startswith(".unsettled/") for path in on_disk(tmp_path))
    again = await open_store(tmp_path, SystemClock())
    try:
        await service(again, tmp_path).finish_pending()
    finally:
        await again.close()
    assert on_disk(tmp_path) == []


async def test_a_cancelled_upload_leaves_nothing(files: FileService, tmp_path: Path) -> None:
    started = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 65_536
            started.set()

    task = asyncio.create_task(service_add(files, endless()))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert on_disk(tmp_path) == []


async def service_add(files: FileService, data: AsyncIterator[bytes]) -> FileRow:
    return await files.add(APP, "a", data)


async def test_nothing_larger_than_the_cap_touches_the_disk(store: SqliteStore, tmp_path: Path) -> None:
    files, seen = service(store, tmp_path, max_bytes=10 * MIB), []

    async def watched() -> AsyncIterator[bytes]:
        for size in (6 * MIB, 4 * MIB, 1, MIB):
            yield b"x" * size
            seen.append(sum(path.stat().st_size for path in (tmp_path / "files").rglob("ff_*")))

    with pytest.raises(FileTooLarge):
        await files.add(APP, "a", watched())
    assert seen == [6 * MIB, 10 * MIB]
    assert on_disk(tmp_path) == []


async def test_many_uploads_at_once_keep_to_the_apps_limit(
    files: FileService, store: SqliteStore, tmp_path: Path
) -> None:
    await limit(store, 1000)
    results = await asyncio.gather(
        *(files.add(APP, "a", pieces(b"x" * 150, b"x" * 150)) for _ in range(20)), return_exceptions=True
    )
    kept = [result for result in results if isinstance(result, FileRow)]
    assert {type(result) for result in results} <= {FileRow, LimitExceeded}
    assert len(on_disk(tmp_path)) == len(kept) <= 3
    assert await store.read(APP, lambda view: sum(view.stored_bytes().values())) == 300 * len(kept)
    await limit(store, 10_000)
    await files.add(APP, "a", pieces(b"x" * 5000))


async def test_two_deletes_at_once_delete_once(
    files: FileService, store: SqliteStore, tmp_path: Path
) -> None:
    token = (await files.add(APP, "a", pieces(b"x"))).file_token
    results = await asyncio.gather(*(files.remove(APP, token) for _ in range(5)), return_exceptions=True)
    assert results.count(None) == 1
    assert all(result is None or isinstance(result, FileNotFound) for result in results)
    assert on_disk(tmp_path) == []
    assert await known(store, token) is None


async def test_old_uploads_are_removed_and_others_stay(files: FileService, tmp_path: Path) -> None:
    old = await files.add(APP, "old", pieces(b"x"))
    new = await files.add(APP, "new", pieces(b"y"))
    assert await files.remove_old(old.created_at) == 0
    assert await files.remove_old(new.created_at) == 1
    assert on_disk(tmp_path) == [f"{APP}/{new.file_token}"]


@pytest.mark.parametrize("app", ["ünïcode", "x" * 128, "a.b-c_d"])
async def test_an_app_may_have_any_name(store: SqliteStore, tmp_path: Path, app: str) -> None:
    await store.write_system(lambda tx: tx.put_app(AppRow(app_name=app, created_at=1)))
    files = service(store, tmp_path)
    row = await files.add(app, "a", pieces(b"x"))
    assert Path(row.path).parent.parent == tmp_path / "files"
    await UploadFolder(tmp_path).take_out(app, row.file_token)
    assert await files.finish_pending() == 1
    assert content_of(row) == b"x"


async def test_large_files_reach_the_disk_in_slices_and_one_slice_at_a_time(
    files: FileService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commits of turns wait for what the disk was given before them."""
    sizes: dict[int, list[int]] = defaultdict(list)
    syncing = most = 0

    sync = os.fdatasync

    def watched(handle: int) -> None:
        nonlocal syncing, most
        syncing += 1
        most = max(most, syncing)
        sizes[handle].append(os.fstat(handle).st_size)
        sync(handle)
        syncing -= 1

    monkeypatch.setattr(os, "fdatasync", watched)
    content = b"x" * (64 * 1024)
    rows = await asyncio.gather(*(files.add(APP, "f", pieces(*[content] * 48)) for _ in range(4)))
    assert [row.size for row in rows] == [3 * MIB] * 4
    assert list(sizes.values()) == [[MIB, 2 * MIB, 3 * MIB]] * 4
    assert most == 1
