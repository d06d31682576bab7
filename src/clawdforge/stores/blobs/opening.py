"""Chooses where pieces of files are put, by the operator's setting."""

from pathlib import Path
from typing import Any, Final

from clawdforge.by_name import load
from clawdforge.core.ports import Store
from clawdforge.core.ports.blobs import BlobPlaces
from clawdforge.stores.blobs.database import DatabasePlaces
from clawdforge.stores.blobs.folder import FolderPlaces
from clawdforge.wire.errors import Unsupported

BUCKET: Final = "clawdforge.stores.blobs.bucket:BucketPlaces"
MISSING: Final = (
    "CLAWDFORGE_BLOBS names a bucket, but {name} is not installed, which it needs; run"
    " `pip install 'clawdforge[s3]'`, or unset it"
)


def open_places(setting: str, store: Store) -> BlobPlaces:
    """Unsupported where a bucket is named and the extra for it is not installed."""
    if setting == "database":
        return DatabasePlaces(store)
    if not setting.startswith("s3://"):
        return FolderPlaces(Path(setting))
    try:
        kind: Any = load(BUCKET)
    except ModuleNotFoundError as error:
        raise Unsupported(MISSING.format(name=error.name)) from error
    places: BlobPlaces = kind(setting)
    return places
