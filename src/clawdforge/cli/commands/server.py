"""`clawdforge server`: the server on the data folder: how it is, its log, stop it, start it again."""

import json
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import click

from clawdforge.cli.failures import Exit, Failure
from clawdforge.cli.output.lines import clean
from clawdforge.cli.target.options import Target, not_started, target_options
from clawdforge.cli.target.quick_get import get
from clawdforge.client._background import LOG_FILE, read_holder, start_server
from clawdforge.client._environment import find_changes, was_started_here
from clawdforge.client.errors import NoServerKnown
from clawdforge.wire.log_lines import write_for_people

STOP_SECS: Final = 120.0
TRIES: Final = 3
LOOK_SECS: Final = 0.1
LOG_LINES: Final = 50
READ_BYTES: Final = 256 * 1024


@click.group()
@target_options
def server() -> None:
    """Look at the server on the data folder, stop it, or start it again with today's environment."""


@server.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@target_options
@click.pass_obj
def status(target: Target, /, *, as_json: bool) -> None:
    """Show whether a server runs, where, and how it is. Ends with 7 if there is none."""
    folder = _folder(target)
    holder = read_holder(folder)
    if holder is None:
        raise Failure(f"no server runs on {folder}; the next command starts one", Exit.UNREACHABLE)
    facts = _describe(folder, holder)
    if as_json:
        click.echo(json.dumps(facts, indent=2))
        return
    changed, how = facts["changed_since"], "by hand, or by a service"
    if facts["in_background"]:
        how = "in the background, by a command"
    lines = [
        f"{facts['url'] or 'starting'} (version {facts['version'] or 'unknown'}, process {facts['pid']})",
        f"  data      {folder}",
        f"  started   {how}",
        f"  sessions  {facts['open_sessions']} open, {facts['live_agents']} agents alive",
        f"  sandbox   {facts['sandbox'] or 'unknown'}",
    ]
    if facts["log"]:
        lines.append(f"  log       {facts['log']}")
    if changed:
        lines.append(f"  changed   {', '.join(changed)}; renew it with `clawdforge server restart`")
    click.echo("\n".join(lines))


def _describe(folder: Path, holder: dict[str, object]) -> dict[str, Any]:
    url, pid = str(holder.get("url") or ""), holder.get("pid")
    health = get(url, "", "/healthz", timeout=5) if url else {}
    ours = was_started_here(folder, pid)
    return {
        "url": url or None,
        "pid": pid,
        "data_dir": str(folder),
        "version": health.get("version"),
        "in_background": ours,
        "open_sessions": health.get("open_sessions", 0),
        "live_agents": health.get("live_agents", 0),
        "sandbox": health.get("sandbox"),
        "log": str(folder / LOG_FILE) if ours else None,
        "changed_since": find_changes(folder, pid, os.environ),
    }


@server.command()
@target_options
@click.pass_obj
def stop(target: Target, /) -> None:
    """Stop the server. Running turns get some time to end; what is queued goes on with the next server."""
    folder = _folder(target)
    holder = read_holder(folder)
    if holder is None:
        target.note(f"no server runs on {folder}")
        return
    _stop(target, folder, holder)
    target.note(f"the server on {folder} has stopped")


@server.command()
@target_options
@click.pass_obj
def restart(target: Target, /) -> None:
    """Stop the server and start one in the background, with the variables that are set here and now."""
    folder = _folder(target)
    holder = read_holder(folder)
    if holder is not None and not was_started_here(folder, holder.get("pid")):
        raise Failure(
            f"the server on {folder} (process {holder.get('pid')}) was started by hand or by a service; "
            "start it again there, or stop it with `clawdforge server stop`: the next command starts one"
        )
    for _ in range(TRIES):
        if holder is not None:
            _stop(target, folder, holder)
        try:
            start_server(folder, target.note)
        except NoServerKnown as error:
            raise not_started(error) from None
        holder = read_holder(folder)
        if holder is None or _has_these_variables(folder, holder):
            return
    raise Failure(
        "other commands were faster each time, and their server has their variables; leave the conversations "
        "that are open on this folder, and try again"
    )


def _has_these_variables(folder: Path, holder: dict[str, object]) -> bool:
    """An open conversation looks for a server all the time, and may have started the new one."""
    pid = holder.get("pid")
    return was_started_here(folder, pid) and not find_changes(folder, pid, os.environ)


@server.command()
@click.option(
    "-n", "lines", type=click.IntRange(min=0), default=LOG_LINES, help="How many lines.  [default: 50]"
)
@click.option("-f", "--follow", is_flag=True, help="Go on with what is written, until Ctrl-C.")
@target_options
@click.pass_obj
def logs(target: Target, /, *, lines: int, follow: bool) -> None:
    """Print the end of the log of a server in the background."""
    path = _folder(target) / LOG_FILE
    if not path.exists():
        raise Failure(
            f"there is no log {path}: a server that was started by hand writes to where it was started",
            Exit.NOT_FOUND,
        )
    pieces = _read_end(path, lines, follow=follow)
    for text in _for_people(pieces) if sys.stdout.isatty() else pieces:
        click.echo(text, nl=False)


def _for_people(pieces: Iterable[str]) -> Iterator[str]:
    """Whole lines, as the server itself would write them to a terminal; what is no line of its log stays."""
    rest = ""
    for piece in pieces:
        *rows, rest = (rest + piece).split("\n")
        for row in rows:
            try:
                line = json.loads(row)
            except ValueError:
                line = None
            is_coloured = "NO_COLOR" not in os.environ
            shown = write_for_people(line, is_coloured=is_coloured) if isinstance(line, dict) else clean(row)
            yield f"{shown}\n"


def _read_end(path: Path, lines: int, *, follow: bool) -> Iterator[str]:
    """The last lines, then what comes. A log that was full was renamed; the new one follows it."""
    file = path.open("rb")
    try:
        file.seek(max(0, path.stat().st_size - READ_BYTES))
        last = file.read().splitlines(keepends=True)
        yield b"".join(last[len(last) - lines :] if lines else []).decode("utf-8", "replace")
        while follow:
            new = file.read(READ_BYTES)
            if new:
                yield new.decode("utf-8", "replace")
            elif _was_renamed(path, file):
                yield file.read().decode("utf-8", "replace")  # what was written to it in the meantime
                file.close()
                file = path.open("rb")
            else:
                time.sleep(LOOK_SECS)
    finally:
        file.close()


def _was_renamed(path: Path, file: BinaryIO) -> bool:
    try:
        return path.stat().st_ino != os.fstat(file.fileno()).st_ino
    except FileNotFoundError:  # between the two steps of a change
        return False


def _stop(target: Target, folder: Path, holder: dict[str, object]) -> None:
    pid = holder.get("pid")
    if not isinstance(pid, int):
        raise Failure(f"a server on {folder} is just starting; try again in a moment", Exit.UNREACHABLE)
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError:
        raise Failure(
            f"the server on {folder} runs as another user; stop it with `sudo kill {pid}`", Exit.AUTH
        ) from None
    target.detail(f"told process {pid} to stop")
    end = time.monotonic() + STOP_SECS
    while time.monotonic() < end:
        found = read_holder(folder)
        if found is None or found.get("pid", pid) != pid:
            return
        time.sleep(LOOK_SECS)
    raise Failure(
        f"process {pid} has not stopped within {STOP_SECS:g} s; a turn may still run. Look with `clawdforge "
        f"stuck`, or end it with `kill -9 {pid}`: nothing that was acknowledged is lost",
        Exit.TIMEOUT,
    )


def _folder(target: Target) -> Path:
    if target.address:
        raise click.UsageError(
            "this is about the server on a data folder of this machine; leave out --server"
        )
    return target.folder
