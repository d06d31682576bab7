"""Which server a command means: `--data-dir` and `--server`, before or after the command's name."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
import orjson

from clawdforge.wire.local import ENV_URL, LOCK_FILE, data_dir_default, default_url

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(slots=True)
class Target:
    """What has been said so far; the option nearest to the command's end wins."""

    data_dir: Path | None = None
    server: str | None = None

    @property
    def folder(self) -> Path:
        return self.data_dir or data_dir_default(os.environ)

    @property
    def elsewhere(self) -> bool:
        """Whether the server is named by its address: the secrets in the data folder are not meant for it."""
        return self.data_dir is None and bool(self.server or os.environ.get(ENV_URL))

    @property
    def url(self) -> str:
        """`--server`, else `CLAWDFORGE_URL`, else what the server on the data folder says of itself."""
        if self.server:
            return self.server.rstrip("/")
        named = os.environ.get(ENV_URL)
        if named and self.data_dir is None:
            return named.rstrip("/")
        return _holder(self.folder) or default_url()


def _holder(folder: Path) -> str | None:
    try:
        found = orjson.loads((folder / LOCK_FILE).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return None
    url = found.get("url") if isinstance(found, dict) else None
    return url if isinstance(url, str) and url else None


def _keep(context: click.Context, option: click.Parameter, value: Any) -> Any:
    target = context.ensure_object(Target)
    if value is not None:
        setattr(target, option.name or "", value)
    return value


def data_dir_option(command: F) -> F:
    """`--data-dir DIR`; the value is kept in the command's Target."""
    return click.option(
        "--data-dir",
        type=click.Path(file_okay=False, path_type=Path),
        callback=_keep,
        expose_value=False,
        help="Folder of the database and the tokens.",
    )(command)


def target_options(command: F) -> F:
    """`--data-dir DIR` and `--server URL`."""
    command = click.option(
        "--server",
        metavar="URL",
        callback=_keep,
        expose_value=False,
        help="A server's address, such as http://127.0.0.1:8800.",
    )(command)
    return data_dir_option(command)
