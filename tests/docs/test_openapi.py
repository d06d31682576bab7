"""The committed description of the routes is what the server publishes, and says how each can fail."""

import asyncio
import json
import os
from typing import Any, cast, get_args

from clawdforge import __version__
from clawdforge.core.services.all import Services
from clawdforge.http.app import ForgeAPI, build_asgi
from clawdforge.http.openapi import BY_ROUTE
from clawdforge.http.settings import HttpSettings
from clawdforge.settings.kinds import Face
from clawdforge.wire.errors import BY_CODE
from tests.docs.render import REFERENCE

FILE = REFERENCE / "openapi.json"
UPDATE = os.environ.get("CLAWDFORGE_TEST_UPDATE_GOLDEN") == "1"


def document() -> dict[str, Any]:
    """Of a server with every door open."""
    settings = HttpSettings(stopping=asyncio.Event(), version=__version__, faces=get_args(Face))
    asgi: Any = build_asgi(cast(Services, None), settings)
    while not isinstance(asgi, ForgeAPI):
        asgi = asgi._asgi
    return asgi.openapi()


def operations(found: dict[str, Any]) -> dict[str, Any]:
    return {
        f"{method.upper()} {path}": operation
        for path, methods in found["paths"].items()
        for method, operation in methods.items()
    }


def test_the_committed_description_is_fresh() -> None:
    text = json.dumps(document(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    if UPDATE:
        FILE.write_text(text, encoding="utf-8")
    assert FILE.read_text(encoding="utf-8") == text, "run scripts/openapi"


def test_every_failure_is_named_with_its_status() -> None:
    statuses = {str(kind.status) for kind in BY_CODE.values()}
    for name, operation in operations(document()).items():
        responses = operation["responses"]
        assert "default" not in responses, name
        failures = {status for status in responses if status >= "400"}
        assert {"403", "421", "500", "503"} <= failures <= statuses, name
        assert "401" in failures or not operation.get("security"), name


def test_the_table_of_failures_names_routes_that_exist() -> None:
    """Those of other parts may still come; a name that is written wrong would never be found."""
    known = operations(document())
    for name in BY_ROUTE:
        method, path = name.split(" ")
        assert method in {"GET", "POST", "PUT", "PATCH", "DELETE"}
        assert path.startswith("/")
    assert {"POST /sessions", "POST /sessions/{session_id}/turn"} <= known.keys() & BY_ROUTE.keys()
