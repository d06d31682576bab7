"""`clawdforge token`: credentials for apps, made by the running server on the operator's word."""

import os
from typing import Any, Final

import click
import httpx2

from clawdforge.cli.options import Target, target_options
from clawdforge.settings import ADMIN_TOKEN_FILE, PREFIX
from clawdforge.wire.admin import TokenReply

ENV_ADMIN_TOKEN: Final = PREFIX + "ADMIN_TOKEN"
TIMEOUT_SECS: Final = 30


@click.group()
@target_options
def token() -> None:
    """Make credentials for apps."""


@token.command()
@click.argument("app")
@click.option("--expires-in", type=click.IntRange(min=1), metavar="SECS", help="Seconds until it expires.")
@target_options
@click.pass_obj
def create(target: Target, /, app: str, expires_in: int | None) -> None:
    """Make a token for APP and print it. It is shown this once."""
    reply = _admin(target, "/admin/tokens", {"app_name": app, "expires_in_secs": expires_in})
    click.echo(TokenReply.model_validate(reply).token)


def _admin(target: Target, path: str, body: dict[str, Any]) -> Any:
    secret = _admin_token(target)
    url = target.find(secret)
    try:
        answer = httpx2.post(
            url + path, json=body, headers={"Authorization": f"Bearer {secret}"}, timeout=TIMEOUT_SECS
        )
        found = answer.json()
    except (httpx2.HTTPError, ValueError) as error:
        raise click.ClickException(
            f"no answer from {url} ({error}); is it running? Start it with `clawdforge serve`"
        ) from None
    if answer.is_error:
        raise click.ClickException(str(found.get("error", answer.status_code)))
    return found


def _admin_token(target: Target) -> str:
    named = os.environ.get(ENV_ADMIN_TOKEN)
    if named and target.data_dir is None:
        return named
    if target.elsewhere:
        raise click.ClickException(f"give the token of that server's operator in {ENV_ADMIN_TOKEN}")
    path = target.folder / ADMIN_TOKEN_FILE
    try:
        return path.read_text().strip()
    except OSError as error:
        raise click.ClickException(
            f"cannot read the operator's token {path} ({error.strerror}); name the server's folder with "
            f"--data-dir or give the token in {ENV_ADMIN_TOKEN}"
        ) from None
