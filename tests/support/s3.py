"""A server that speaks like S3, with a bucket, on a port of its own."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import httpx2

from tests.needs import MOTO

BUCKET: Final = "forge"
START_SECS: Final = 60


@contextmanager
def run_s3() -> Iterator[dict[str, str]]:
    """The variables that lead to it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [MOTO, "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={"PATH": os.environ.get("PATH", os.defpath)},
    )
    url = f"http://127.0.0.1:{port}"
    try:
        _make_bucket(url)
        yield {
            "AWS_ENDPOINT": url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "of-the-tests",
            "AWS_SECRET_ACCESS_KEY": "of-the-tests",
        }
    finally:
        server.kill()
        server.wait()


def _make_bucket(url: str) -> None:
    end = time.monotonic() + START_SECS
    while True:
        try:
            made = httpx2.put(f"{url}/{BUCKET}")
        except httpx2.TransportError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
        else:
            assert made.status_code == 200, made.text
            return
