"""The journeys on the page of hermes-webui as tests, where it can be had and a browser is there."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tests.callers.desk import Desk, set_up
from tests.callers.front_end import VERSIONS, NotToBeHad, fetch, source_of
from tests.callers.journeys import JOURNEYS, Journey, check_quiet
from tests.needs import needs
from tests.page.kit import launched

pytestmark = [needs("chromium"), pytest.mark.slow]


@pytest.fixture(scope="module", params=list(VERSIONS))
def desks(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[bool, Desk]]:
    folder = tmp_path_factory.mktemp("hermes")
    try:
        front_end = fetch(request.param, source_of(), folder)
    except NotToBeHad as reason:
        pytest.skip(str(reason))
    for name in ("trusting", "plain"):
        Path(folder / name).mkdir()
    with (
        sync_playwright() as playwright,
        launched(playwright) as browser,
        set_up(front_end, browser, folder / "trusting", "--trust-loopback") as trusting,
        set_up(front_end, browser, folder / "plain") as plain,
    ):
        yield {True: trusting, False: plain}


@pytest.mark.parametrize("journey", JOURNEYS, ids=lambda journey: journey.name)
def test_a_journey_ends_well(desks: dict[bool, Desk], journey: Journey) -> None:
    desk = desks[journey.trusts]
    try:
        journey.walk(desk)
        check_quiet(desk, journey)
    finally:
        desk.close()
