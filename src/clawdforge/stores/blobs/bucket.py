"""Keeps pieces of files in a bucket: S3, or what speaks like it. Credentials come from the AWS variables."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from clawdforge.wire.errors import StoreUnavailable

PATIENCE: Final = timedelta(seconds=30)
FAILURES: Final = (BaseError, OSError)


class BucketPlaces:
    def __init__(self, url: str) -> None:
        self._url = url
        self._bucket = S3Store.from_url(url, retry_config={"max_retries": 3, "retry_timeout": PATIENCE})

    async def put(self, app: str, pieces: Mapping[str, bytes]) -> None:
        for place, data in pieces.items():
            try:
                await obstore.put_async(self._bucket, _name(app, place), data)
            except FAILURES as error:
                raise self._explain(error) from error

    async def get(self, app: str, place: str) -> bytes | None:
        try:
            found = await obstore.get_async(self._bucket, _name(app, place))
            return bytes(await found.bytes_async())
        except FAILURES as error:
            if _is_missing(error):
                return None
            raise self._explain(error) from error

    async def remove(self, app: str, places: Sequence[str]) -> None:
        try:
            await obstore.delete_async(self._bucket, [_name(app, place) for place in places])
        except FAILURES as error:
            if not _is_missing(error):
                raise self._explain(error) from error

    def _explain(self, error: Exception) -> StoreUnavailable:
        why = str(error).partition("\n")[0][:200]
        return StoreUnavailable(
            f"the bucket {self._url} of CLAWDFORGE_BLOBS cannot be used ({why}); look after the AWS variables"
            " of the server, and whether the bucket is there",
            retry_after=10.0,
        )


def _is_missing(error: Exception) -> bool:
    """The piece, and not the whole bucket."""
    return isinstance(error, FileNotFoundError) and "NoSuchBucket" not in str(error)


def _name(app: str, place: str) -> str:
    return f"{hashlib.sha256(app.encode()).hexdigest()[:32]}/{place}"
