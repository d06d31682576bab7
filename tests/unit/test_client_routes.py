"""The SDK and the server have the same routes; the blocking and the awaiting client the same methods."""

import importlib.metadata
import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel

import clawdforge
from clawdforge import client
from clawdforge.client import _calls as calls
from clawdforge.client import _schedule_calls as schedule_calls
from clawdforge.client import _webhook_calls as webhook_calls
from clawdforge.client import errors
from clawdforge.client._async.admin import AsyncAdmin
from clawdforge.client._async.raw import AsyncRaw
from clawdforge.client._sync.admin import Admin
from clawdforge.client._sync.raw import Raw
from clawdforge.http.dialects.forge import routers as forge
from clawdforge.wire import admin as wire_admin
from clawdforge.wire import schedules as wire_schedules
from clawdforge.wire import session as wire_session
from clawdforge.wire import turn as wire_turn
from clawdforge.wire import webhooks as wire_webhooks

ROOT = Path(__file__).parents[2]
CALLS = {**vars(calls), **vars(schedule_calls), **vars(webhook_calls)}
PAIRS = [
    (client.Forge, client.AsyncForge),
    (client.Session, client.AsyncSession),
    (client.TurnStream, client.AsyncTurnStream),
    (Admin, AsyncAdmin),
    (Raw, AsyncRaw),
]

BODIES = [
    (client.Forge.create_session, wire_session.CreateSession),
    (client.Forge.session, wire_session.CreateSession),
    (client.Forge.import_session, wire_session.ImportRequest),
    (client.Forge.run, wire_admin.RunRequest),
    (client.Forge.put_persona, wire_admin.PutPersona),
    (client.Session.patch, wire_session.PatchSession),
    (client.Session.turn, wire_turn.TurnRequest),
    (client.Session.submit, wire_turn.TurnRequest),
    (client.Session.stream, wire_turn.TurnRequest),
    (client.Session.change_turn, wire_turn.ChangeTurn),
    (client.Session.cancel, wire_turn.CancelRequest),
    (client.Session.decide, wire_turn.DecideRequest),
    (client.Session.undo, wire_session.UndoRequest),
    (client.Session.redo, wire_session.RedoRequest),
    (client.Session.retry, wire_session.RetryRequest),
    (client.Session.fork, wire_session.ForkRequest),
    (client.Session.clear, wire_session.Guarded),
    (client.Session.compact, wire_session.CompactRequest),
    (Admin.create_token, wire_admin.CreateToken),
    (client.Forge.add_webhook, wire_webhooks.CreateEndpoint),
    (client.Forge.change_webhook, wire_webhooks.ChangeEndpoint),
    (client.Forge.rotate_webhook, wire_webhooks.RotateSecret),
    (client.Forge.add_schedule, wire_schedules.CreateSchedule),
    (client.Forge.change_schedule, wire_schedules.ChangeSchedule),
    (client.Forge.preview_schedule, wire_schedules.PreviewSchedule),
    (Admin.put_app, wire_admin.PutApp),
]


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def plain(rows: set[tuple[str, str]] | frozenset[tuple[str, str]]) -> set[tuple[str, str]]:
    return {(method, re.sub(r"{[^}]*}", "{}", path)) for method, path in rows}


def served() -> set[tuple[str, str]]:
    return plain({(m, r.path) for router in forge.routers() for r in router.routes for m in r.methods})


def test_every_route_of_the_server_has_a_method() -> None:
    assert served() - plain(calls.routes(CALLS)) == set()


def test_every_method_has_a_route_of_the_server() -> None:
    assert plain(calls.routes(CALLS)) - served() == set()


def test_every_method_is_used_by_the_client() -> None:
    used = "".join(path.read_text() for path in (ROOT / "src/clawdforge/client/_async").glob("*.py"))
    named = [name for name, row in CALLS.items() if isinstance(row, calls.Route)]
    assert [name for name in named if f"calls.{name}(" not in used] == []


@pytest.mark.parametrize(("method", "body"), BODIES, ids=lambda value: str(getattr(value, "__name__", value)))
def test_a_method_takes_every_field_of_its_body(method: Any, body: type[BaseModel]) -> None:
    assert set(body.model_fields) - set(inspect.signature(method).parameters) == set()


def methods(kind: type) -> dict[str, str]:
    found = {}
    for name, value in inspect.getmembers(kind, inspect.isfunction):
        text = f"{name}{inspect.signature(value)}".replace("_async", "_sync")
        text = re.sub(r"\bAsync(?=[A-Z])", "", text).replace("AsyncIterator", "Iterator")
        found[re.sub(r"__a(enter|exit|iter|next)__", r"__\1__", name)] = re.sub(
            r"__a(enter|exit|iter|next)__", r"__\1__", text
        )
    return found


@pytest.mark.parametrize(("blocking", "awaiting"), PAIRS)
def test_both_clients_have_the_same_signatures(blocking: type, awaiting: type) -> None:
    """X-28."""
    assert methods(blocking) == methods(awaiting)


def test_the_blocking_client_follows_from_the_awaiting_one() -> None:
    assert script("unasync").stale() == []


def test_the_reference_page_follows_from_the_code() -> None:
    reference = script("sdk_reference")
    assert reference.PAGE.read_text() == reference.page(), "run python scripts/sdk_reference.py"


def test_the_reference_page_names_every_error_and_every_code() -> None:
    page = script("sdk_reference").page()
    shown = page[page.index("## Errors") :]
    tree = shown[: shown.index("| class |")]
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert [kind.__name__ for kind in kinds if not re.search(rf"\b{kind.__name__}\b", tree)] == []
    assert [code for code in errors.BY_CODE if f"| `{code}` |" not in shown] == []


def test_the_version_is_the_distributions() -> None:
    """S1-02, X-27."""
    assert clawdforge.__version__ == importlib.metadata.version("clawdforge")


def run(code: str, *flags: str) -> str:
    ran = subprocess.run([sys.executable, *flags, "-c", code], capture_output=True, text=True, check=True)
    return ran.stdout + ran.stderr


def test_importing_the_package_imports_no_server_and_next_to_nothing() -> None:
    loaded = run("import sys, clawdforge; print(*sys.modules)").split()
    assert [name for name in loaded if name.startswith("clawdforge")] == ["clawdforge"]
    assert {"httpx2", "pydantic", "fastapi", "asyncio", "typing"}.isdisjoint(loaded)


def test_using_the_client_imports_no_server() -> None:
    loaded = run("import sys; from clawdforge import Forge; print(*sys.modules)").split()
    assert "asyncio" not in loaded
    loaded = run("import sys; from clawdforge import Forge, AsyncForge; print(*sys.modules)").split()
    ours = {name.split(".")[1] for name in loaded if name.startswith("clawdforge.")}
    assert ours == {"client", "wire"}
    assert {"fastapi", "starlette", "uvicorn", "apsw", "click", "rich"}.isdisjoint(loaded)


def test_the_client_imports_the_http_library_with_a_call_and_the_models_with_a_reply() -> None:
    code = (
        "import sys\n"
        "from clawdforge import Forge, ForgeAPIError, ForgeConnectionError, Session, TurnResult\n"
        "def heavy(): print(sorted({'httpx2', 'pydantic'} & set(sys.modules)))\n"
        "with Forge('http://127.0.0.1:1', 't', retries=0) as forge:\n"
        "    session = forge.attach('s')\n"
        "    heavy()\n"
        "    try: session.turn('hi')\n"
        "    except ForgeConnectionError: heavy()\n"
    )
    assert run(code).splitlines() == ["[]", "['httpx2']"]
