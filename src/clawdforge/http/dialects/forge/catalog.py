"""Forge routes beside sessions: one-shot runs, agents, personas, limits."""

from dataclasses import asdict
from typing import Annotated

from starlette.requests import Request
from starlette.responses import Response

from clawdforge.core.models.rows import PersonaRow
from clawdforge.core.rules.personas import BUILTIN
from clawdforge.http.connections.waiting import unless_disconnected
from clawdforge.http.dialects.forge import budgets, shapes
from clawdforge.http.errors import json_response
from clawdforge.http.requests.marks import Path
from clawdforge.http.routers import Router
from clawdforge.http.routing import App, AppRoute, Caller, Core, has_own_limit
from clawdforge.wire.admin import (
    AgentPage,
    Done,
    LimitsReply,
    Persona,
    PersonaPage,
    PersonaReply,
    PutPersona,
    RunReply,
    RunRequest,
)

NewName = Annotated[str, Path(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f\x7f]+$")]


class RunRoute(AppRoute):
    """A route whose callers know the statuses of the old `/run`."""

    dialect = "run"


def run_routes() -> Router:
    router = Router(RunRoute, tags=["runs"])
    router.post("/run", response_model=RunReply)(run)
    return router


def routes() -> Router:
    router = Router(AppRoute, tags=["agents"])
    router.get("/agents", response_model=AgentPage)(list_agents)
    router.get("/limits", response_model=LimitsReply)(limits)
    router.get("/personas", response_model=PersonaPage)(list_personas)
    router.get("/personas/{name}", response_model=PersonaReply)(get_persona)
    router.put("/personas/{name}", response_model=PersonaReply)(put_persona)
    router.delete("/personas/{name}", response_model=Done)(delete_persona)
    return router


async def limits(core: Core, app: App) -> Response:
    """The app's limits and what it uses of them, its budgets, and how long sessions are kept."""
    allowed, used = await core.shares.usage(app)
    return json_response(
        LimitsReply(
            app_name=app,
            **allowed.limits,
            sources=allowed.sources,
            **asdict(used),
            servers=core.nodes.count,
            paused=[shapes.in_force(row) for row in await core.pauses.find_for(app)],
            budgets=[budgets.shape(state) for state in await core.budgets.find_for(app)],
            closes_after_secs=round(core.ages.idle),
            deletes_after_secs=round(core.ages.closed),
        )
    )


@has_own_limit
async def run(request: Request, core: Core, caller: Caller, body: RunRequest) -> Response:
    """Run one prompt without a session. Hanging up ends the run."""
    done = await unless_disconnected(request.receive, core.runs.run(caller.app, body, caller))
    if done is None:
        return Response()  # nobody is there to read it
    reply = RunReply(ok=True, result=done.result, duration_ms=done.duration_ms, stop_reason=done.stop_reason)
    return json_response(reply)


async def list_agents(core: Core, app: App) -> Response:
    """The agents known here, whether each is installed, and whether the operator has paused it."""
    page = core.agents.page()
    pauses = {row.agent: shapes.in_force(row) for row in await core.pauses.find_for(app)}
    agents = [one.model_copy(update={"paused": pauses.get(one.name)}) for one in page.agents]
    return json_response(page.model_copy(update={"agents": agents}))


async def list_personas(core: Core, app: App) -> Response:
    """The app's personas, and the built-in one."""
    rows = [_persona(row) for row in await core.personas.list(app)]
    return json_response(PersonaPage(personas=rows, count=len(rows)))


async def get_persona(core: Core, app: App, name: str) -> Response:
    """One persona."""
    return json_response(PersonaReply(persona=_persona(await core.personas.get(app, name))))


async def put_persona(core: Core, caller: Caller, name: NewName, body: PutPersona) -> Response:
    """Make a persona, or replace it. Sessions that were made with it stay as they are."""
    row = await core.personas.put(caller.app, name, body, may_decide=caller.may_decide)
    return json_response(PersonaReply(persona=_persona(row)))


async def delete_persona(core: Core, app: App, name: str) -> Response:
    """Delete a persona. Sessions that were made with it stay as they are."""
    await core.personas.remove(app, name)
    return json_response(Done())


def _persona(row: PersonaRow) -> Persona:
    return Persona(
        name=row.name,
        agent=row.agent,
        model=row.model,
        permission_mode=row.permission_mode,
        instructions=row.instructions,
        plan_mode=row.plan_mode,
        builtin=row.name == BUILTIN,
    )
