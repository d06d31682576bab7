"""`clawdforge open`: the server's page in a browser that is logged in by a code."""

import os
import webbrowser
from typing import Final
from urllib.parse import quote

import click

from clawdforge.cli.target.completing import complete_id
from clawdforge.cli.target.connect import connect
from clawdforge.cli.target.find_session import find
from clawdforge.cli.target.options import Target, target_options

ENV_BROWSER: Final = "BROWSER"


@click.command(name="open")
@click.argument("session", metavar="[ID]", required=False, shell_complete=complete_id)
@click.option("--print", "only_prints", is_flag=True, help="Print the address and open nothing.")
@target_options
@click.pass_obj
def open_(target: Target, /, session: str | None, *, only_prints: bool) -> None:
    """Open the server's page in the browser, logged in; with ID, at that session.

    The address holds a code that logs in once, within a minute. Without a browser it is printed.
    """
    endpoint = target.reach()
    row = None if session is None else find(endpoint, session)
    with connect(target) as forge:
        code = forge.login_code().code
    # After the #, so that no server and no log sees it.
    url = f"{endpoint.url}/ui/#code={code}"
    if row is not None:
        url += f"&session={quote(row['session_id'], safe='')}"
    if not only_prints and _open_browser(url):
        target.note(f"opened {endpoint.url}/ui/ in the browser")
        return
    click.echo(url)
    target.note("open this address within a minute; it logs in once")


def _open_browser(url: str) -> bool:
    """Whether there is a browser with windows, or one that was chosen, and it was started."""
    try:
        found = webbrowser.get()
    except webbrowser.Error:
        return False
    is_in_terminal = type(found) is webbrowser.GenericBrowser  # the others go on beside the terminal
    if is_in_terminal and not os.environ.get(ENV_BROWSER):
        return False
    return found.open(url)
