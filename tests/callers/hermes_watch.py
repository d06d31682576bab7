"""A plugin for the tests of hermes-webui: notes what each asked of the server and how it ended.

It is loaded by their pytest, not by ours, so it uses nothing but the standard library and pytest.
"""

import http.client
import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

NOTES = "CLAWDFORGE_TEST_NOTES"
"""The file to write to: a line of JSON for each test."""


class Watch:
    def __init__(self, notes: Path) -> None:
        self._notes = notes
        self.asked: list[tuple[str, int]] = []
        self.own: list[tuple[str, int]] = []
        self.failure = ""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self.own, self.failure = [], ""
        result = yield
        if self.own:
            told = {"test": item.nodeid, "asked": self.own, "failure": self.failure}
            with self._notes.open("a") as file:
                file.write(json.dumps(told) + "\n")
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        """What fixtures of every test ask for before and after is not the test's own."""
        self.asked = []
        try:
            return (yield)
        finally:
            self.own = list(self.asked)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failure:
            crash = getattr(report.longrepr, "reprcrash", None)
            self.failure = (crash.message if crash else str(report.longrepr))[:400]


class Connection(http.client.HTTPConnection):
    """What `http.client` and `urllib` use while it is in place of theirs."""

    watch: Watch

    def putrequest(self, method: str, url: str, *args: Any, **kwargs: Any) -> None:
        self._route = f"{method} {urlsplit(url).path}"
        super().putrequest(method, url, *args, **kwargs)

    def getresponse(self) -> http.client.HTTPResponse:
        reply = super().getresponse()
        self.watch.asked.append((self._route, reply.status))
        return reply


def pytest_configure(config: pytest.Config) -> None:
    watch = Watch(Path(os.environ[NOTES]))
    Connection.watch = watch
    http.client.HTTPConnection = Connection  # type: ignore[misc]
    config.pluginmanager.register(watch)
