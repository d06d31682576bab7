"""Drives the public front end of hermes-webui on this server, and prints which journeys end well.

    python -m tests.callers.hermes_page [--source GIT_FOLDER_OR_ADDRESS] [--only WORD]

Its page asks other hosts for fonts and a highlighter of code. They are not reached; that counts as no error.
"""

import argparse
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright
from playwright.sync_api import Error as BrowserError

from tests.callers.desk import Desk, set_up
from tests.callers.front_end import PUBLIC, VERSIONS, FrontEnd, NotToBeHad, fetch
from tests.callers.journeys import JOURNEYS, Journey, check_quiet
from tests.page.kit import launched

WORDS = 400


def main() -> int:
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--source", default=PUBLIC, help="a git repository that has its commits")
    given.add_argument("--only", default="", help="only journeys with this word in their name")
    given.add_argument("--version", choices=list(VERSIONS), action="append", help="only this version")
    options = given.parse_args()
    chosen = [journey for journey in JOURNEYS if options.only in journey.name]
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        try:
            ends = [fetch(version, options.source, folder) for version in options.version or VERSIONS]
        except NotToBeHad as reason:
            print(f"the front end is not to be had: {reason}")
            return 2
        with launched(playwright) as browser:
            rows = {end.version: list(walk_all(end, browser, folder, chosen)) for end in ends}
    print("\n| journey | " + " | ".join(rows) + " |\n|---|" + "---|" * len(rows))
    for number, journey in enumerate(chosen):
        print(f"| {journey.name} | " + " | ".join(found[number] or "ok" for found in rows.values()) + " |")
    failed = sum(reason is not None for found in rows.values() for reason in found)
    print(f"\n{failed} of {len(rows) * len(chosen)} journeys failed")
    return 1 if failed else 0


def walk_all(end: FrontEnd, browser: Browser, folder: Path, chosen: list[Journey]) -> Iterator[str | None]:
    """What each journey failed with, if it did."""
    with ExitStack() as stack:
        desks: dict[bool, Desk] = {}
        for journey in chosen:
            if journey.trusts not in desks:
                place = folder / f"{end.version}-{journey.trusts}"
                place.mkdir()
                flags = ("--trust-loopback",) if journey.trusts else ()
                desks[journey.trusts] = stack.enter_context(set_up(end, browser, place, *flags))
            reason = walk(desks[journey.trusts], journey)
            print(f"{end.version}: {journey.name}: {reason or 'ok'}", flush=True)
            yield reason


def walk(desk: Desk, journey: Journey) -> str | None:
    try:
        journey.walk(desk)
        check_quiet(desk, journey)
    except (AssertionError, BrowserError) as error:
        return " ".join(str(error).split())[:WORDS] or _find_line(error)
    finally:
        desk.close()
    return None


def _find_line(error: BaseException) -> str:
    """Where a journey ended that says nothing else."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{last.filename}:{last.lineno}: {last.line}"


if __name__ == "__main__":
    sys.exit(main())
