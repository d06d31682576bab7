"""`clawdforge token`: credentials for apps, made by the running server on the operator's word."""

import json
import re
from typing import Final, get_args

import click

from clawdforge.cli.tables import align
from clawdforge.cli.target.connect import connect_as_operator
from clawdforge.cli.target.options import Target, target_options
from clawdforge.wire.base import to_iso
from clawdforge.wire.scopes import ScopeWord

UNITS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


class Duration(click.ParamType[int]):
    """Whole seconds, written as `90`, `90s`, `15m`, `12h`, `7d` or `2w`."""

    name = "duration"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = re.fullmatch(r"([0-9]{1,10})([smhdw]?)", str(value).strip())
        if found is None or int(found[1]) == 0:
            self.fail(f"{value!r} is no length of time; write it like 90s, 15m, 12h, 7d or 2w", param, ctx)
        return int(found[1]) * UNITS[found[2]]


@click.group()
@target_options
def token() -> None:
    """Make, list and revoke credentials for apps. For operators."""


@token.command()
@click.argument("app")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(get_args(ScopeWord)),
    help="What it may do; give it once for each.  [default: everything]",
)
@click.option(
    "--expires",
    "--expires-in",
    "expires",
    type=Duration(),
    help="How long it is good, such as 90s, 12h or 7d; a bare number is seconds.  [default: for ever]",
)
@click.option("--note", help="What it is for.")
@target_options
@click.pass_obj
def create(
    target: Target,
    /,
    app: str,
    *,
    scopes: tuple[ScopeWord, ...],
    expires: int | None,
    note: str | None,
) -> None:
    """Make a token for APP and print it. It is shown only this once."""
    with connect_as_operator(target) as forge:
        made = forge.admin.create_token(app, scopes=scopes or None, expires_in_secs=expires, note=note)
        click.echo(made.token)


@token.command(name="list")
@click.argument("app", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@target_options
@click.pass_obj
def list_(target: Target, /, app: str | None, *, as_json: bool) -> None:
    """List the tokens of APP, or all of them, without their secrets."""
    with connect_as_operator(target) as forge:
        found = forge.admin.tokens(app)
    if as_json:
        click.echo(json.dumps([one.model_dump() for one in found], indent=2))
        return
    rows = [
        (
            one.token_id,
            one.app_name,
            _describe_state(one.revoked_at, one.expires_at),
            ",".join(one.scopes),
            f"used {_format_day(one.last_used_at)}" if one.last_used_at is not None else "never used",
            one.note or "",
        )
        for one in found
    ]
    click.echo("\n".join(align(rows, colour=target.colour)))


def _describe_state(revoked_at: int | None, expires_at: int | None) -> str:
    if revoked_at is not None:
        return f"revoked {_format_day(revoked_at)}"
    return f"expires {_format_day(expires_at)}" if expires_at is not None else "good"


def _format_day(seconds: int) -> str:
    return to_iso(seconds * 1_000_000)[:10]


@token.command()
@click.argument("token_id")
@target_options
@click.pass_obj
def revoke(target: Target, /, token_id: str) -> None:
    """Revoke a token at once, and end its open streams. `token list` shows the ids."""
    with connect_as_operator(target) as forge:
        forge.admin.revoke_token(token_id)
    target.note(f"token {token_id} is revoked")
