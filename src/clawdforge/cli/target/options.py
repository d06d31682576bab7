"""What every command takes, before or after its name: which server is meant, and how much is said."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from clawdforge.cli.failures import Exit, Failure
from clawdforge.client._background import ensure_server, read_holder
from clawdforge.client._folder import is_loopback, local_token, lock_url
from clawdforge.client._lazy import import_for_an_answer
from clawdforge.client.errors import NoServerKnown, ServerNotStarted
from clawdforge.wire.local import ENV_TOKEN, ENV_URL, data_dir_default

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server and the token for it. A local one can use folders of this machine."""

    url: str
    token: str

    @property
    def is_local(self) -> bool:
        return is_loopback(self.url)


@dataclass(slots=True)
class Target:
    """The options given so far; where one is given twice, the last one wins."""

    data_dir: Path | None = None
    server: str | None = None
    quiet: bool = False
    verbose: bool = False

    @property
    def folder(self) -> Path:
        return (self.data_dir or data_dir_default(os.environ)).expanduser().absolute()

    @property
    def address(self) -> str | None:
        """The server that was named by its address, if one was."""
        named = self.server or (os.environ.get(ENV_URL) if self.data_dir is None else None)
        if named and not named.startswith(("http://", "https://")):
            raise Failure(
                f"{named!r} is not a server's address, which begins with http:// or https://", Exit.USAGE
            )
        return named.rstrip("/") if named else None

    def reach(self) -> Endpoint:
        """The server that is meant, and our token for it. Starts one on the data folder if need be."""
        given = os.environ.get(ENV_TOKEN) if self.data_dir is None or self.server else None
        url = self.address or self._ensure_server()
        # The folder's token is for the folder's server only.
        token = given or (local_token(self.folder) if url == lock_url(self.folder) else None)
        if not token:
            raise Failure(f"no token for {url}; set it in {ENV_TOKEN}", Exit.AUTH)
        return Endpoint(url, token)

    def find_running(self) -> Endpoint | None:
        """The server that is meant if it runs; none is started and nothing is said."""
        holder = read_holder(self.folder)
        url = self.address or (holder or {}).get("url")
        token = os.environ.get(ENV_TOKEN) or local_token(self.folder)
        return Endpoint(str(url), token) if url and token else None

    def reach_with(self, token: str) -> Endpoint:
        """The same for a caller that has its token."""
        return Endpoint(self.address or self._ensure_server(), token)

    def _ensure_server(self) -> str:
        try:
            return ensure_server(self.folder, self.note, import_for_an_answer)
        except NoServerKnown as error:
            raise not_started(error) from None

    def note(self, text: str) -> None:
        """Something that a person may want to know. It is never part of the answer."""
        if not self.quiet:
            click.echo(text, err=True)

    def detail(self, text: str) -> None:
        """Something to print with --verbose only."""
        if self.verbose:
            click.echo(text, err=True)

    @property
    def is_terminal(self) -> bool:
        return sys.stdout.isatty()

    @property
    def colour(self) -> bool:
        return self.is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def not_started(error: NoServerKnown) -> Failure:
    """The failure that it becomes when no server can be had on the data folder."""
    return Failure(str(error), Exit.UNREACHABLE if isinstance(error, ServerNotStarted) else Exit.ERROR)


def _store_in_target(context: click.Context, option: click.Parameter, value: Any) -> Any:
    target = context.ensure_object(Target)
    if value is not None and value is not False:
        setattr(target, option.name or "", value)
    return value


def data_dir_option(command: F) -> F:
    """`--data-dir DIR`; the value is kept in the command's Target."""
    return click.option(
        "--data-dir",
        type=click.Path(file_okay=False, path_type=Path),
        callback=_store_in_target,
        expose_value=False,
        help="Folder of the database and the tokens.",
    )(command)


def target_options(command: F) -> F:
    """`--data-dir DIR`, `--server URL`, `--quiet`, `--verbose`."""
    for name, text in (
        ("verbose", "Print more details, on stderr."),
        ("quiet", "Print nothing but the answer."),
    ):
        command = click.option(
            f"--{name}", is_flag=True, callback=_store_in_target, expose_value=False, help=text
        )(command)
    command = click.option(
        "--server",
        metavar="URL",
        callback=_store_in_target,
        expose_value=False,
        help="A server's address, such as http://127.0.0.1:8800.",
    )(command)
    return data_dir_option(command)
