"""`clawdforge webhook`: URLs that the server tells of your app's events, and what became of each delivery."""

import json
from typing import Final

import click

from clawdforge.cli.tables import align
from clawdforge.cli.target.connect import connect
from clawdforge.cli.target.options import Target, target_options
from clawdforge.client.models import Delivery, DeliveryStateWord, Endpoint, WebhookEventWord
from clawdforge.wire.base import to_iso

EVENTS: Final = ("turn.ended", "permission.requested", "session.closed", "budget.crossed")
STATES: Final = ("waiting", "delivered", "dead")


@click.group()
@target_options
def webhook() -> None:
    """Call URLs with your app's events, and see what became of each delivery."""


@webhook.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@target_options
@click.pass_obj
def list_(target: Target, /, *, as_json: bool) -> None:
    """List your app's webhooks, without their secrets."""
    with connect(target) as forge:
        found = forge.webhooks()
    if as_json:
        click.echo(json.dumps([one.model_dump() for one in found], indent=2))
        return
    _print(target, [_show_endpoint(one) for one in found], "no webhooks; `clawdforge webhook add` makes one")


@webhook.command()
@click.argument("url")
@click.option("--event", "events", multiple=True, type=click.Choice(EVENTS),
              help="Event to send; give it once for each.  [default: everything]")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@target_options
@click.pass_obj
def add(target: Target, /, url: str, *, events: tuple[WebhookEventWord, ...], as_json: bool) -> None:
    """Register URL, and print its id and its secret, which is shown only this once."""
    with connect(target) as forge:
        made = forge.add_webhook(url, events=events or None)
    text = made.model_dump_json(indent=2)
    click.echo(text if as_json else f"{made.endpoint.endpoint_id}\t{made.secret}")


@webhook.command()
@click.argument("endpoint_id", metavar="ID")
@click.option("--url", help="Call this URL from now on.")
@click.option("--event", "events", multiple=True, type=click.Choice(EVENTS),
              help="Send only this event; give it once for each.")  # fmt: skip
@click.option("--on/--off", "enabled", default=None, help="Switch it on, or off.")
@target_options
@click.pass_obj
def change(
    target: Target,
    /,
    endpoint_id: str,
    *,
    url: str | None,
    events: tuple[WebhookEventWord, ...],
    enabled: bool | None,
) -> None:
    """Change a webhook's URL or events, or switch it off and on."""
    if url is None and not events and enabled is None:
        raise click.UsageError("give --url, --event, --on or --off")
    with connect(target) as forge:
        forge.change_webhook(endpoint_id, url=url, events=events or None, enabled=enabled)


@webhook.command()
@click.argument("endpoint_id", metavar="ID")
@click.option("--overlap", type=click.IntRange(min=0), metavar="SECONDS",
              help="How long the old one signs too.  [default: a day]")  # fmt: skip
@target_options
@click.pass_obj
def rotate(target: Target, /, endpoint_id: str, *, overlap: int | None) -> None:
    """Give a webhook another secret and print it. It is shown only this once."""
    with connect(target) as forge:
        click.echo(forge.rotate_webhook(endpoint_id, overlap_secs=overlap).secret)


@webhook.command()
@click.argument("endpoint_id", metavar="ID")
@target_options
@click.pass_obj
def remove(target: Target, /, endpoint_id: str) -> None:
    """Remove a webhook, with what was not delivered yet."""
    with connect(target) as forge:
        forge.remove_webhook(endpoint_id)


@webhook.command()
@click.argument("endpoint_id", metavar="ID")
@click.option("--state", type=click.Choice(STATES), help="Only those in this state; dead: given up.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@target_options
@click.pass_obj
def deliveries(
    target: Target, /, endpoint_id: str, *, state: DeliveryStateWord | None, as_json: bool
) -> None:
    """List the deliveries of a webhook, newest first."""
    with connect(target) as forge:
        found = list(forge.deliveries(endpoint_id, state=state))
    if as_json:
        click.echo(json.dumps([one.model_dump() for one in found], indent=2))
        return
    _print(target, [_show_delivery(one) for one in found], "no deliveries")


@webhook.command()
@click.argument("endpoint_id", metavar="ID")
@click.argument("delivery_ids", metavar="DELIVERY", nargs=-1, required=True)
@target_options
@click.pass_obj
def resend(target: Target, /, endpoint_id: str, delivery_ids: tuple[str, ...]) -> None:
    """Deliver something again, with the same id."""
    with connect(target) as forge:
        for delivery_id in delivery_ids:
            forge.resend(endpoint_id, delivery_id)


def _show_endpoint(one: Endpoint) -> tuple[str, ...]:
    state = "on" if one.enabled else f"off: {one.disabled_reason}"
    return one.endpoint_id, one.url, ",".join(one.events), state


def _show_delivery(one: Delivery) -> tuple[str, ...]:
    made = to_iso(one.created_at * 1_000_000)[:19]
    return one.delivery_id, one.type, made, one.state, f"{one.attempts} tries", one.error or ""


def _print(target: Target, rows: list[tuple[str, ...]], nothing: str) -> None:
    if not rows:
        target.note(nothing)
        return
    lines = align(rows, colour=target.colour) if target.is_terminal else ["\t".join(row) for row in rows]
    click.echo("\n".join(lines))
