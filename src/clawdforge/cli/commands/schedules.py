"""`clawdforge schedules`: prompts that the server submits by itself, and what became of each time."""

import json
from pathlib import Path
from typing import Any, Final

import click

from clawdforge.cli.tables import align
from clawdforge.cli.target.connect import connect
from clawdforge.cli.target.options import Target, target_options
from clawdforge.client.models import MissedWord, Occurrence, OverlapWord, Schedule
from clawdforge.wire.base import to_iso_seconds

OVERLAPS: Final = ("skip", "queue")
MISSED: Final = ("skip", "run_once")
SHOWN_CHARS: Final = 60
LOCAL_TIME: Final = Path("/etc/localtime")


@click.group()
@target_options
def schedules() -> None:
    """Have the server submit prompts by itself, by cron or once, and see what became of each time."""


@schedules.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@target_options
@click.pass_obj
def list_schedules(target: Target, /, *, as_json: bool) -> None:
    """List your app's schedules: id, times, state, when it comes next, prompt."""
    with connect(target) as forge:
        found = list(forge.schedules())
    if as_json:
        click.echo(json.dumps([one.model_dump() for one in found], indent=2))
        return
    _print(target, [_show_schedule(one) for one in found], "no schedules")


@schedules.command()
@click.argument("prompt")
@click.option("--cron", metavar="FIELDS", help="Minute, hour, day of the month, month, day of the week.")
@click.option("--at", metavar="TIME", help="Once, at a time such as 2026-12-01T09:00.")
@click.option("--timezone", metavar="ZONE", help="Of the times.  [default: that of this machine, else UTC]")
@click.option("--session", "session_id", metavar="ID", help="Use this session; else a new one each time.")
@click.option("--agent", help="Of the new sessions.")
@click.option("--cwd", type=click.Path(), help="The folder in which the new sessions work.")
@click.option("--keep", is_flag=True, help="Keep the new sessions; else they are deleted after a day.")
@click.option("--title", help="What it is for.")
@click.option("--overlap", type=click.Choice(OVERLAPS),
              help="While its last turn has not ended.  [default: skip]")  # fmt: skip
@click.option("--missed", type=click.Choice(MISSED),
              help="When the server was away at the time.  [default: run_once]")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@target_options
@click.pass_obj
def add(
    target: Target,
    /,
    prompt: str,
    *,
    cron: str | None,
    at: str | None,
    timezone: str | None,
    session_id: str | None,
    agent: str | None,
    cwd: str | None,
    keep: bool,
    title: str | None,
    overlap: OverlapWord | None,
    missed: MissedWord | None,
    as_json: bool,
) -> None:
    """Have PROMPT submitted at these times, and print the id of the schedule."""
    if (cron is None) == (at is None):
        raise click.UsageError("give either --cron or --at")
    made_of: dict[str, Any] = {"agent": agent, "cwd": cwd, "retention": "keep" if keep else None}
    made_of = {name: value for name, value in made_of.items() if value is not None}
    if session_id is not None and made_of:
        raise click.UsageError("--agent, --cwd and --keep are for new sessions; leave out --session")
    with connect(target) as forge:
        made = forge.add_schedule(
            prompt,
            cron=cron,
            at=at,
            timezone=timezone or find_zone(),
            session_id=session_id,
            session=made_of or None,
            title=title,
            overlap=overlap,
            missed=missed,
        )
    if as_json:
        click.echo(made.model_dump_json(indent=2))
        return
    click.echo(made.schedule_id)
    target.note(f"next {_say(made.next_at)} ({made.timezone}); it runs while the server does")


@schedules.command()
@click.argument("schedule_id", metavar="ID")
@target_options
@click.pass_obj
def show(target: Target, /, schedule_id: str) -> None:
    """Print a schedule as JSON."""
    with connect(target) as forge:
        click.echo(forge.get_schedule(schedule_id).model_dump_json(indent=2))


@schedules.command()
@click.argument("schedule_id", metavar="ID")
@target_options
@click.pass_obj
def pause(target: Target, /, schedule_id: str) -> None:
    """Pause a schedule: its times pass, and nothing is run."""
    with connect(target) as forge:
        forge.change_schedule(schedule_id, paused=True)


@schedules.command()
@click.argument("schedule_id", metavar="ID")
@target_options
@click.pass_obj
def resume(target: Target, /, schedule_id: str) -> None:
    """Go on with the next time of a schedule, with your token from now on."""
    with connect(target) as forge:
        made = forge.change_schedule(schedule_id, paused=False)
    target.note(f"next {_say(made.next_at)}")


@schedules.command()
@click.argument("schedule_id", metavar="ID")
@target_options
@click.pass_obj
def run(target: Target, /, schedule_id: str) -> None:
    """Submit the prompt of a schedule now, and print the session and the turn."""
    with connect(target) as forge:
        made = forge.run_schedule(schedule_id)
    click.echo(f"{made.session_id}\t{made.turn_index}")


@schedules.command()
@click.argument("schedule_id", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@target_options
@click.pass_obj
def history(target: Target, /, schedule_id: str, *, as_json: bool) -> None:
    """List what became of the times of a schedule, newest first."""
    with connect(target) as forge:
        found = list(forge.schedule_history(schedule_id))
    if as_json:
        click.echo(json.dumps([one.model_dump() for one in found], indent=2))
        return
    _print(target, [_show_occurrence(one) for one in found], "nothing yet")


@schedules.command()
@click.argument("schedule_id", metavar="ID")
@target_options
@click.pass_obj
def remove(target: Target, /, schedule_id: str) -> None:
    """Remove a schedule with its history; the turns that it made stay."""
    with connect(target) as forge:
        forge.remove_schedule(schedule_id)


def find_zone() -> str | None:
    """The name of this machine's time zone: where the link /etc/localtime leads. None where it is a file."""
    _, found, name = str(LOCAL_TIME.resolve()).partition("/zoneinfo/")
    return name if found else None


def _show_schedule(one: Schedule) -> tuple[str, ...]:
    times = one.cron or _say(one.at)
    state = one.state if one.reason is None else f"{one.state}: {one.reason}"
    prompt = " ".join((one.title or one.prompt).split())[:SHOWN_CHARS]
    return one.schedule_id, f"{times} {one.timezone}", state, _say(one.next_at), prompt


def _show_occurrence(one: Occurrence) -> tuple[str, ...]:
    turn = one.outcome or one.turn_state
    how = one.state if turn is None else f"{one.state}, {turn}"
    missed = f"{one.missed} missed before" if one.missed else ""
    where = f"{one.session_id} {one.turn_index}" if one.turn_index is not None else ""
    return _say(one.planned_at), how, where, one.error or missed


def _say(at: int | None) -> str:
    return "-" if at is None else to_iso_seconds(at * 1_000_000) or "-"


def _print(target: Target, rows: list[tuple[str, ...]], nothing: str) -> None:
    if not rows:
        target.note(nothing)
        return
    lines = align(rows, colour=target.colour) if target.is_terminal else ["\t".join(row) for row in rows]
    click.echo("\n".join(lines))
