"""Every path that the sources of hermes-webui name, page and server, is one that this server answers."""

import re
from pathlib import Path

import pytest

from clawdforge.http.dialects.hermes import routers as hermes
from clawdforge.http.routing import OpenRoute
from tests.callers.front_end import VERSIONS, NotToBeHad, source_of, unpack
from tests.docs.test_dialects import answers

CALLED = re.compile(r"""[`'"/](/?api/[\w/-]*[\w-])""")
COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)
HANDLER = re.compile(r"^def handle_(get|post|put|patch|delete)\((.*?)(?=^def |\Z)", re.DOTALL | re.MULTILINE)
COMPARED = re.compile(r"""parsed\.path(?: (==|in) |\.startswith)[({]?((?:"[^"]+",?\s*)+)""")


@pytest.fixture(scope="module", params=list(VERSIONS))
def checkout(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        folder = tmp_path_factory.mktemp("sources")
        return unpack(request.param, source_of(), folder, "static", "api/routes.py")
    except NotToBeHad as reason:
        pytest.skip(str(reason))


def table() -> list[OpenRoute]:
    """As a proxy reaches it; the list of sessions is there as well."""
    return [route for router in hermes.routers("/page") for route in router.routes]


def test_no_path_that_the_page_calls_is_unknown(checkout: Path) -> None:
    """A path that something is put behind ends where that begins."""
    texts = [COMMENT.sub("", file.read_text()) for file in (checkout / "static").rglob("*.js")]
    called = {"/" + found[1].lstrip("/") for text in texts for found in CALLED.finditer(text)}
    routes = table()
    known = [route.path_regex for route in routes]
    lost = [
        path
        for path in called
        if not any(one.match(f"/page{path}") or one.match(f"/page{path}/some") for one in known)
    ]
    assert lost == []
    assert len(called) > 70


def test_no_route_of_its_server_is_unknown(checkout: Path) -> None:
    text = (checkout / "api" / "routes.py").read_text()
    routes, lost, walked = table(), list[str](), 0
    for handler in HANDLER.finditer(text):
        method = handler[1].upper()
        for compared in COMPARED.finditer(handler[2]):
            for path in re.findall(r'"(/api/[^"]+|/health)"', compared[2]):
                asked = path if compared[1] else path.rstrip("/") + "/some"
                walked += 1
                if not answers(routes, method, f"/page{asked}"):
                    lost.append(f"{method} {asked}")
    assert lost == []
    assert walked > 80
