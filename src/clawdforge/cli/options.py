"""Which server a command means: `--data-dir` and `--server`, before or after the command's name."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from clawdforge.client._local import find_server
from clawdforge.wire.local import ENV_DATA_DIR, ENV_URL, data_dir_default

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

    def find(self, token: str) -> str:
        """The address of the server that is meant, for a caller that has its token."""
        env = dict(os.environ)
        if self.data_dir is not None:
            env.pop(ENV_URL, None)
            env[ENV_DATA_DIR] = str(self.data_dir)
        return find_server(self.server, token, env)[0]


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
