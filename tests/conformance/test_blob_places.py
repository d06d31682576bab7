"""Where pieces of files are put: the same in the database, in a folder and in a bucket."""

import errno
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.ports.blobs import BlobPlaces
from clawdforge.stores.blobs.bucket import BucketPlaces
from clawdforge.stores.blobs.folder import FolderPlaces
from clawdforge.stores.blobs.opening import open_places
from clawdforge.stores.sqlite.store import SqliteStore
from clawdforge.wire.errors import StoreUnavailable
from tests.needs import missing, needs
from tests.support.s3 import BUCKET, run_s3

LARGE = bytes(range(256)) * 4096


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, str]]:
    """The variables that lead to it; none where it is not installed."""
    if missing("moto") is not None:
        yield {}
        return
    with run_s3() as variables:
        yield variables


@pytest.fixture(params=["database", "folder", pytest.param("bucket", marks=needs("moto"))])
async def places(
    request: pytest.FixtureRequest, s3: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[BlobPlaces]:
    store = await SqliteStore.open(tmp_path, SystemClock())
    setting = {"database": "database", "folder": str(tmp_path / "blobs")}.get(request.param)
    if setting is None:
        for name, value in s3.items():
            monkeypatch.setenv(name, value)
        setting = f"s3://{BUCKET}/{tmp_path.name}"
    yield open_places(setting, store)
    await store.close()


async def test_what_is_put_is_got_back(places: BlobPlaces) -> None:
    await places.put("app", {"one": b"\x00first", "two": LARGE})
    assert await places.get("app", "one") == b"\x00first"
    assert await places.get("app", "two") == LARGE
    assert await places.get("app", "three") is None


async def test_apps_are_apart(places: BlobPlaces) -> None:
    await places.put("app", {"one": b"mine"})
    assert await places.get("other", "one") is None
    await places.remove("other", ["one"])
    assert await places.get("app", "one") == b"mine"


async def test_what_is_removed_is_gone_and_may_be_removed_again(places: BlobPlaces) -> None:
    await places.put("app", {"one": b"1", "two": b"2"})
    await places.remove("app", ["one", "never"])
    await places.remove("app", ["one"])
    assert await places.get("app", "one") is None
    assert await places.get("app", "two") == b"2"


async def test_a_folder_that_cannot_be_used_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "blobs").write_text("in the way")
    places = FolderPlaces(tmp_path / "blobs")
    with pytest.raises(StoreUnavailable, match=r"CLAWDFORGE_BLOBS cannot be used .*; mount it"):
        await places.put("app", {"one": b"1"})


async def test_a_folder_without_room_says_that_room_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    places = FolderPlaces(tmp_path / "blobs")
    await places.put("app", {"one": b"1"})
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(StoreUnavailable, match=r"No space left on device: .*; make room there") as full:
            await places.put("app", {"two": b"2"})
    assert full.value.status == 503
    assert full.value.retry_after == 10
    await places.put("app", {"three": b"3"})
    assert await places.get("app", "one") == b"1"


async def test_the_folder_of_an_app_is_made_to_last_with_its_first_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[Path, int]] = []

    def note(path: Path) -> None:
        synced.append((path, len(list(path.iterdir()))))

    monkeypatch.setattr("clawdforge.stores.blobs.folder.sync_folder", note)
    places = FolderPlaces(tmp_path / "blobs")
    await places.put("app", {"one": b"1"})
    (app,) = (tmp_path / "blobs").iterdir()
    assert synced == [(tmp_path, 1), (tmp_path / "blobs", 1), (app, 1)]
    await places.put("app", {"two": b"2"})
    assert synced[3:] == [(app, 2)]
    other = FolderPlaces(
        tmp_path / "blobs"
    )  # another server, which does not know what the first one has synced
    await other.put("app", {"three": b"3"})
    assert synced[4:] == [(tmp_path / "blobs", 1), (app, 3)]


@needs("moto")
async def test_a_bucket_that_is_not_there_says_what_to_do(
    s3: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StoreUnavailable, match=r"s3://nowhere of CLAWDFORGE_BLOBS cannot be used"):
        await BucketPlaces("s3://nowhere").put("app", {"one": b"1"})
    with pytest.raises(StoreUnavailable, match=r"NoSuchBucket|not found"):
        await BucketPlaces("s3://nowhere").get("app", "one")
