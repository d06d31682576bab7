"""`clawdforge disk`: what apps store, by form, and which sessions of an app are the largest."""

import json
from collections.abc import Mapping

import click

from clawdforge.cli.tables import align, bar, size
from clawdforge.cli.target.connect import connect_as_operator
from clawdforge.cli.target.options import Target, target_options
from clawdforge.client.models import AppDisk, SessionDisk


@click.command()
@click.argument("app", required=False)
@click.option(
    "--limit",
    type=click.IntRange(1, 1000),
    default=20,
    show_default=True,
    help="How many sessions of APP to show.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@target_options
@click.pass_obj
def disk(target: Target, /, app: str | None, *, limit: int, as_json: bool) -> None:
    """Show what every app stores; with APP, its forms and its largest sessions. For operators."""
    with connect_as_operator(target) as forge:
        found = forge.admin.disk(app, limit=limit if app else None)
    if as_json:
        click.echo(json.dumps(found.model_dump(mode="json"), indent=2))
    elif app is None:
        _print_apps(target, found.apps)
    else:
        _print_forms(target, found.apps)
        _print_sessions(target, found.sessions or [])


def _print_apps(target: Target, apps: list[AppDisk]) -> None:
    largest = max((one.bytes for one in apps), default=0)
    rows = [
        (
            one.app_name,
            size(one.bytes),
            "-" if one.max_bytes is None else size(one.max_bytes),
            bar(one.bytes, largest if one.max_bytes is None else one.max_bytes),
            _name_largest(one.forms),
        )
        for one in apps
    ]
    if rows:
        head = ("app", "stored", "of", "used", "most of it")
        click.echo("\n".join(align(rows, colour=target.colour, head=head)))


def _print_forms(target: Target, apps: list[AppDisk]) -> None:
    for one in apps:
        rows = [(form, size(count), bar(count, one.bytes)) for form, count in _largest_first(one.forms)]
        click.echo("\n".join(align(rows, colour=target.colour, head=("form", "stored", "part"))))


def _print_sessions(target: Target, sessions: list[SessionDisk]) -> None:
    largest = max((one.bytes for one in sessions), default=0)
    rows = [
        (one.session_id, size(one.bytes), bar(one.bytes, largest), _name_largest(one.forms))
        for one in sessions
    ]
    if rows:
        head = ("session", "stored", "beside the largest", "most of it")
        click.echo("\n" + "\n".join(align(rows, colour=target.colour, head=head)))


def _largest_first(forms: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(forms.items(), key=lambda form: -form[1])


def _name_largest(forms: Mapping[str, int]) -> str:
    (name, count), *_ = [*_largest_first(forms), ("-", 0)]
    return f"{name} {size(count)}" if count else "-"
