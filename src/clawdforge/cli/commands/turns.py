"""`send`, `stop` and `run`: turns of a session from a script or another terminal."""

import json
import sys
from typing import Any

import click

from clawdforge.cli.commands.turn_limits import given_limits, limit_options
from clawdforge.cli.failures import Exit, Failure
from clawdforge.cli.output.answer import FORMATS, Printer, outcome_code
from clawdforge.cli.target.connect import connect
from clawdforge.cli.target.find_session import find, find_open, id_argument
from clawdforge.cli.target.options import Target, target_options

POLICIES = ("queue", "reject", "interrupt", "steer", "rollback")


@click.command()
@id_argument
@click.argument("words", metavar="[PROMPT]", nargs=-1)
@click.option("--detach", is_flag=True, help="Queue it, print the turn's number, and do not wait.")
@click.option(
    "--if-busy",
    type=click.Choice(POLICIES),
    help="What to do while another turn runs.  [default: queue]",
)
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECS", help="Time limit.")
@click.option(
    "--output-format", type=click.Choice(FORMATS), default="text", show_default=True, help="What to print."
)
@limit_options
@click.option("--wait-permission", is_flag=True, help="Wait for `approve` or `deny` when the agent asks.")
@target_options
@click.pass_obj
def send(
    target: Target,
    /,
    session: str,
    words: tuple[str, ...],
    *,
    detach: bool,
    if_busy: str | None,
    timeout: float | None,
    output_format: str,
    wait_permission: bool,
    **limits: Any,
) -> None:
    """Send a prompt to a session and print the answer. Without PROMPT it is read from stdin."""
    prompt = " ".join(words) or sys.stdin.read().strip()
    if not prompt:
        raise click.UsageError("no prompt; write it after ID or pipe it in")
    row = find_open(target.reach(), session)
    options: dict[str, Any] = {"timeout_secs": timeout, "if_busy": if_busy, **given_limits(limits)}
    with connect(target) as forge:
        handle = forge.handle(row)
        if detach:
            accepted = handle.submit(prompt, **options)
            click.echo(accepted.turn_index)
            target.note(f"follow it with `clawdforge tail -f {row['session_id'][:8]}`")
            return
        printer = Printer(target, handle, output_format, waits=wait_permission)
        result = printer.run_turn(prompt, **options)
    raise SystemExit(outcome_code(target, printer, result))


@click.command()
@id_argument
@click.option("--queued", is_flag=True, help="Take the waiting turns out of the queue as well.")
@target_options
@click.pass_obj
def stop(target: Target, /, session: str, *, queued: bool) -> None:
    """Stop the running turn. The answer so far is kept."""
    row = find(target.reach(), session)
    with connect(target) as forge:
        cancelled = forge.handle(row).cancel(queued=queued).cancelled
    target.note(
        f"stopped {cancelled} turn{'' if cancelled == 1 else 's'}"
        if cancelled
        else "nothing was left to stop"
    )


@click.command()
@click.argument("words", metavar="[PROMPT]", nargs=-1)
@click.option("-m", "--model", help="Model to use.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECS", help="Time limit.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole reply as JSON.")
@target_options
@click.pass_obj
def run(
    target: Target, /, words: tuple[str, ...], *, model: str | None, timeout: float | None, as_json: bool
) -> None:
    """Run one prompt with `claude -p`, without a session. Without PROMPT it is read from stdin."""
    prompt = " ".join(words) or sys.stdin.read().strip()
    if not prompt:
        raise click.UsageError("no prompt; write it after run or pipe it in")
    with connect(target) as forge:
        reply = forge.run(prompt, model=model, timeout_secs=timeout)
    if as_json:
        click.echo(json.dumps(dict(reply.body), ensure_ascii=False))
    else:
        text = reply.result
        click.echo(text if isinstance(text, str) else json.dumps(text, ensure_ascii=False))
    if not reply.ok:
        raise Failure("the run failed", Exit.ERROR)
