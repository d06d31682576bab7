"""Every call of the native dialect, once, without I/O: method, path, what is sent, how the answer is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from urllib.parse import quote

import orjson

from clawdforge.client import _lazy as lazy
from clawdforge.client.results import RunResult, TurnResult

if TYPE_CHECKING:
    from datetime import date

    from pydantic import BaseModel

    from clawdforge.wire.admin import AgentInfo, AppInfo, AuditEntry, Persona, TokenInfo
    from clawdforge.wire.budgets import Budget
    from clawdforge.wire.event import EventPage
    from clawdforge.wire.event_kinds import AnyEvent
    from clawdforge.wire.message import Message, SearchHit
    from clawdforge.wire.nodes import Node
    from clawdforge.wire.pauses import Pause
    from clawdforge.wire.session import Session
    from clawdforge.wire.shares import Share
    from clawdforge.wire.turn import AppPermission, Permission, Turn
    from clawdforge.wire.usage import UsageRow

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
M = TypeVar("M", bound="BaseModel")

SAFE_METHODS: Final = frozenset({"GET", "PUT", "DELETE"})
"""Sending these twice has the same effect as once. A POST is safe only with an idempotency key."""


@dataclass(frozen=True, slots=True)
class Call(Generic[T_co]):
    """One request, ready to be sent, and the reading of its answer.

    `wait_secs` is how long the work itself may take, when the caller has said so. `fine` are statuses
    that are an answer here, not a failure.
    """

    method: str
    path: str
    parse: Callable[[bytes], T_co]
    params: Mapping[str, str] = field(default_factory=dict)
    json: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Any] | None = None
    wait_secs: float | None = None
    fine: frozenset[int] = frozenset()

    @property
    def safe(self) -> bool:
        return self.method in SAFE_METHODS or any(name.lower() == "idempotency-key" for name in self.headers)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list; `next` is the cursor of the following one."""

    items: list[T]
    next: str | int | None = None


@dataclass(frozen=True, slots=True)
class Route(Generic[T]):
    """A row of the route table. Called with the ids in its path, it makes a `Call`.

    `query` is what is asked for in every call.
    """

    method: str
    path: str
    parse: Callable[[bytes], T]
    fine: frozenset[int] = frozenset()
    query: Mapping[str, object] = field(default_factory=dict)

    def __call__(
        self,
        *ids: str | int,
        params: Mapping[str, object] | None = None,
        body: Mapping[str, Any] | None = None,
        key: str | None = None,
        accept: str | None = None,
        files: Mapping[str, Any] | None = None,
        wait_secs: float | None = None,
    ) -> Call[T]:
        headers = {"Idempotency-Key": key} if key else {}
        if accept:
            headers["Accept"] = accept
        asked = {**self.query, **(params or {})}
        takes_json = self.method in ("POST", "PUT", "PATCH") and files is None
        return Call(
            method=self.method,
            path=fill(self.path, ids),
            parse=self.parse,
            params={name: _param(value) for name, value in asked.items() if value is not None},
            json=drop_nulls(body or {}) if takes_json else None,
            headers=headers,
            files=files,
            wait_secs=wait_secs,
            fine=self.fine,
        )


def fill(path: str, ids: Sequence[str | int]) -> str:
    """The path with its `{…}` filled in; an empty id would name another route, so it is refused."""
    segments = iter(ids)
    return "/".join(
        _segment(next(segments), part) if part.startswith("{") else part for part in path.split("/")
    )


def drop_nulls(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Only the fields that the caller has set: no nulls on the wire."""
    return {name: value for name, value in fields.items() if value is not None}


def name_days(
    by: Sequence[str], from_day: date | str | None, to_day: date | str | None, page_size: int | None
) -> dict[str, Any]:
    """The parameters of usage by day; a date says its day by itself."""
    days = {"from": from_day, "to": to_day}
    said = {name: None if day is None else str(day) for name, day in days.items()}
    return {"by": ",".join(by) or "day", **said, "limit": page_size}


def check_prompt(prompt: str) -> str:
    if not prompt:
        raise ValueError("the prompt is empty")
    return prompt


def _segment(value: str | int, part: str) -> str:
    text = quote(str(value), safe="")
    if not text:
        raise ValueError(f"{part.strip('{}')} is empty")
    # A segment of dots would be taken for a step up the path.
    return text if text.strip(".") else text.replace(".", "%2E")


def _param(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _json(raw: bytes) -> dict[str, Any]:
    value = orjson.loads(raw)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004 - the answer's value is wrong, not a type of ours
    return value


def _handle_info(raw: bytes) -> Mapping[str, Any]:
    """What a handle is made of. Without the model, whose import would hold up a program's first prompt."""
    value = _json(raw)
    if not isinstance(value.get("session_id"), str):
        raise ValueError("no session_id")  # noqa: TRY004 - as above
    return value


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _bytes(raw: bytes) -> bytes:
    return raw


def read_model(kind: Callable[[], type[M]]) -> Callable[[bytes], M]:
    """Reads a model, which is looked up when there is something to read."""
    return lambda raw: kind().model_validate_json(raw)


def read_part(kind: Callable[[], type[M]], take: Callable[[M], T]) -> Callable[[bytes], T]:
    return lambda raw: take(kind().model_validate_json(raw))


EACH_TEXT_ONCE: Final = {"form": "compact"}
"""Asked of every route that answers with events: what the agent said, in the compact form."""

CREATE_SESSION: Final = Route("POST", "/sessions", _handle_info)
LIST_SESSIONS: Final[Route[Page[Session]]] = Route(
    "GET",
    "/sessions",
    read_part(lambda: lazy.session.SessionPage, lambda page: Page(page.sessions, page.next)),
)
GET_SESSION: Final = Route("GET", "/sessions/{session_id}", read_model(lambda: lazy.session.SessionReply))
PATCH_SESSION: Final = Route("PATCH", "/sessions/{session_id}", read_model(lambda: lazy.session.SessionReply))
CLOSE_SESSION: Final = Route("DELETE", "/sessions/{session_id}", _json)
IMPORT_SESSION: Final = Route("POST", "/sessions/import", read_model(lambda: lazy.session.SessionReply))

TURN: Final = Route(
    "POST",
    "/sessions/{session_id}/turn",
    lambda raw: TurnResult.from_response(_json(raw)),
    query=EACH_TEXT_ONCE,
)
SUBMIT: Final = Route("POST", "/sessions/{session_id}/turns", read_model(lambda: lazy.turn.TurnAccepted))
TURNS: Final[Route[Page[Turn]]] = Route(
    "GET",
    "/sessions/{session_id}/turns",
    read_part(lambda: lazy.turn.TurnPage, lambda page: Page(page.turns, page.next)),
)
CHANGE_TURN: Final = Route(
    "PATCH", "/sessions/{session_id}/turns/{turn_index}", read_model(lambda: lazy.turn.TurnChanged)
)
TURN_CHANGES: Final = Route(
    "GET",
    "/sessions/{session_id}/turns/{turn_index}/changes",
    read_model(lambda: lazy.turn_changes.TurnChanges),
)
TURN_DIFF: Final = Route(
    "GET",
    "/sessions/{session_id}/turns/{turn_index}/changes",
    read_model(lambda: lazy.turn_changes.TurnDiff),
)
WITHDRAW: Final = Route(
    "DELETE", "/sessions/{session_id}/turns/{turn_index}", read_model(lambda: lazy.turn.CancelReply)
)
CANCEL: Final = Route("POST", "/sessions/{session_id}/cancel", read_model(lambda: lazy.turn.CancelReply))


def _narrow_page(page: EventPage) -> Page[AnyEvent]:
    return Page([lazy.event_kinds.narrow(event) for event in page.events], page.next)


EVENTS: Final[Route[Page[AnyEvent]]] = Route(
    "GET",
    "/sessions/{session_id}/events",
    read_part(lambda: lazy.event.EventPage, _narrow_page),
    query=EACH_TEXT_ONCE,
)
MESSAGES: Final[Route[Page[Message]]] = Route(
    "GET",
    "/sessions/{session_id}/messages",
    read_part(lambda: lazy.message.MessagePage, lambda page: Page(page.messages, page.next)),
)

MESSAGE_PAGE: Final = Route(
    "GET", "/sessions/{session_id}/messages", read_model(lambda: lazy.message.MessagePage)
)

CHANGES: Final = Route("GET", "/events", read_model(lambda: lazy.changes.ChangePage))

TREE: Final = Route("GET", "/sessions/{session_id}/tree", read_model(lambda: lazy.tree.TreeReply))

UNDO: Final = Route("POST", "/sessions/{session_id}/undo", read_model(lambda: lazy.session.CutReply))
REDO: Final = Route("POST", "/sessions/{session_id}/redo", read_model(lambda: lazy.session.RestoreReply))
RETRY: Final = Route("POST", "/sessions/{session_id}/retry", read_model(lambda: lazy.session.CutReply))
FORK: Final = Route("POST", "/sessions/{session_id}/fork", read_model(lambda: lazy.session.SessionReply))
CLEAR: Final = Route("POST", "/sessions/{session_id}/clear", read_model(lambda: lazy.session.HistoryReply))
COMPACT: Final = Route(
    "POST", "/sessions/{session_id}/compact", read_model(lambda: lazy.session.HistoryReply)
)
LET_GO: Final = Route("DELETE", "/sessions/{session_id}/agent", _json)  # nobody reads more of it
REOPEN: Final = Route("POST", "/sessions/{session_id}/reopen", read_model(lambda: lazy.session.SessionReply))
PURGE: Final = Route("POST", "/sessions/{session_id}/purge", read_model(lambda: lazy.session.PurgeReply))
USAGE: Final = Route("GET", "/sessions/{session_id}/usage", read_model(lambda: lazy.session.UsageReply))
EXPORT: Final = Route("GET", "/sessions/{session_id}/export", read_model(lambda: lazy.session.Export))
EXPORT_TEXT: Final = Route("GET", "/sessions/{session_id}/export", _text)

SHARE: Final = Route("POST", "/sessions/{session_id}/shares", read_model(lambda: lazy.shares.ShareReply))
SHARES: Final[Route[list[Share]]] = Route(
    "GET",
    "/sessions/{session_id}/shares",
    read_part(lambda: lazy.shares.SharePage, lambda page: page.shares),
)
REVOKE_SHARE: Final = Route(
    "DELETE", "/sessions/{session_id}/shares/{share_id}", read_model(lambda: lazy.admin.Done)
)
SHARED: Final = Route("GET", "/shared", read_model(lambda: lazy.shares.SharedSession))
SHARED_MESSAGES: Final = Route("GET", "/shared/messages", read_model(lambda: lazy.shares.SharedMessages))

PERMISSIONS: Final[Route[list[Permission]]] = Route(
    "GET",
    "/sessions/{session_id}/permissions",
    read_part(lambda: lazy.turn.PermissionPage, lambda page: page.permissions),
)
PENDING: Final[Route[Page[AppPermission]]] = Route(
    "GET",
    "/permissions",
    read_part(lambda: lazy.turn.AppPermissionPage, lambda page: Page(page.permissions, page.next)),
)
DECIDE: Final[Route[Permission]] = Route(
    "POST",
    "/sessions/{session_id}/permissions/{permission_id}",
    read_part(lambda: lazy.turn.PermissionReply, lambda reply: reply.permission),
)

SEARCH: Final[Route[Page[SearchHit]]] = Route(
    "GET", "/search", read_part(lambda: lazy.message.SearchPage, lambda page: Page(page.hits, page.next))
)
UPLOAD: Final = Route("POST", "/files", read_model(lambda: lazy.admin.FileReply))
DOWNLOAD: Final = Route("GET", "/files/{file_token}", _bytes)
DELETE_FILE: Final = Route("DELETE", "/files/{file_token}", read_model(lambda: lazy.admin.Done))
RUN: Final = Route("POST", "/run", lambda raw: RunResult.from_response(_json(raw)))

AGENTS: Final[Route[list[AgentInfo]]] = Route(
    "GET", "/agents", read_part(lambda: lazy.admin.AgentPage, lambda page: page.agents)
)
LIMITS: Final = Route("GET", "/limits", read_model(lambda: lazy.admin.LimitsReply))
PERSONAS: Final[Route[list[Persona]]] = Route(
    "GET", "/personas", read_part(lambda: lazy.admin.PersonaPage, lambda page: page.personas)
)
GET_PERSONA: Final[Route[Persona]] = Route(
    "GET", "/personas/{name}", read_part(lambda: lazy.admin.PersonaReply, lambda reply: reply.persona)
)
PUT_PERSONA: Final[Route[Persona]] = Route(
    "PUT", "/personas/{name}", read_part(lambda: lazy.admin.PersonaReply, lambda reply: reply.persona)
)
DELETE_PERSONA: Final = Route("DELETE", "/personas/{name}", read_model(lambda: lazy.admin.Done))

HEALTHZ: Final = Route("GET", "/healthz", read_model(lambda: lazy.admin.Health))
READYZ: Final = Route("GET", "/readyz", read_model(lambda: lazy.admin.Ready), frozenset({503}))
METRICS: Final = Route("GET", "/metrics", _text)

APPS: Final[Route[list[AppInfo]]] = Route(
    "GET", "/admin/apps", read_part(lambda: lazy.admin.AppPage, lambda page: page.apps)
)
PUT_APP: Final[Route[AppInfo]] = Route(
    "POST", "/admin/apps", read_part(lambda: lazy.admin.AppReply, lambda reply: reply.app)
)
OWN_TOKENS: Final[Route[list[TokenInfo]]] = Route(
    "GET", "/tokens", read_part(lambda: lazy.admin.TokenPage, lambda page: page.tokens)
)
CREATE_OWN_TOKEN: Final = Route("POST", "/tokens", read_model(lambda: lazy.admin.TokenReply))
REVOKE_OWN_TOKEN: Final = Route("DELETE", "/tokens/{token_id}", read_model(lambda: lazy.admin.Done))

LOGIN_CODE: Final = Route("POST", "/login/codes", read_model(lambda: lazy.browser.LoginCode))

BUDGETS: Final[Route[list[Budget]]] = Route(
    "GET", "/budgets", read_part(lambda: lazy.budgets.BudgetPage, lambda page: page.budgets)
)
SET_BUDGET: Final[Route[Budget]] = Route(
    "PUT", "/budgets", read_part(lambda: lazy.budgets.BudgetReply, lambda reply: reply.budget)
)
REMOVE_BUDGET: Final = Route("DELETE", "/budgets/{budget_id}", read_model(lambda: lazy.admin.Done))
ANY_BUDGETS: Final[Route[Page[Budget]]] = Route(
    "GET",
    "/admin/budgets",
    read_part(lambda: lazy.budgets.BudgetPage, lambda page: Page(page.budgets, page.next)),
)
SET_ANY_BUDGET: Final[Route[Budget]] = Route(
    "PUT", "/admin/budgets", read_part(lambda: lazy.budgets.BudgetReply, lambda reply: reply.budget)
)
REMOVE_ANY_BUDGET: Final = Route("DELETE", "/admin/budgets/{budget_id}", read_model(lambda: lazy.admin.Done))

TOKENS: Final[Route[list[TokenInfo]]] = Route(
    "GET", "/admin/tokens", read_part(lambda: lazy.admin.TokenPage, lambda page: page.tokens)
)
CREATE_TOKEN: Final = Route("POST", "/admin/tokens", read_model(lambda: lazy.admin.TokenReply))
REVOKE_TOKEN: Final = Route("DELETE", "/admin/tokens/{token_id}", read_model(lambda: lazy.admin.Done))
PAUSES: Final[Route[list[Pause]]] = Route(
    "GET", "/admin/pauses", read_part(lambda: lazy.pauses.PausePage, lambda page: page.pauses)
)
PAUSE: Final = Route("POST", "/admin/pause", read_model(lambda: lazy.pauses.PauseReply))
RESUME: Final = Route("POST", "/admin/resume", read_model(lambda: lazy.pauses.ResumeReply))
SWEEP: Final = Route("POST", "/admin/sweep", read_model(lambda: lazy.admin.SweepReply))
STUCK: Final = Route("GET", "/admin/stuck", read_model(lambda: lazy.admin.StuckReply))
NODES: Final[Route[list[Node]]] = Route(
    "GET", "/admin/nodes", read_part(lambda: lazy.nodes.NodePage, lambda page: page.nodes)
)
DRAIN: Final[Route[Node]] = Route(
    "POST",
    "/admin/nodes/{node}/drain",
    read_part(lambda: lazy.nodes.NodeReply, lambda reply: reply.node),
)
UNDRAIN: Final[Route[Node]] = Route(
    "DELETE",
    "/admin/nodes/{node}/drain",
    read_part(lambda: lazy.nodes.NodeReply, lambda reply: reply.node),
)
DISK: Final = Route("GET", "/admin/disk", read_model(lambda: lazy.disk.DiskReply))
AUDIT: Final[Route[Page[AuditEntry]]] = Route(
    "GET",
    "/admin/audit",
    read_part(lambda: lazy.admin.AuditPage, lambda page: Page(page.entries, page.next)),
)
VERIFY_AUDIT: Final = Route("GET", "/admin/audit/verify", read_model(lambda: lazy.admin.AuditVerdict))
ADMIN_USAGE: Final = Route("GET", "/admin/usage", read_model(lambda: lazy.admin.AdminUsage))
USAGE_ROWS: Final[Route[Page[UsageRow]]] = Route(
    "GET", "/usage", read_part(lambda: lazy.usage.UsagePage, lambda page: Page(page.rows, page.next))
)
ADMIN_USAGE_ROWS: Final[Route[Page[UsageRow]]] = Route(
    "GET", "/admin/usage", read_part(lambda: lazy.usage.UsagePage, lambda page: Page(page.rows, page.next))
)


def routes(namespace: Mapping[str, object]) -> frozenset[tuple[str, str]]:
    """Method and path of every route in a module's names; the table above is `routes(vars(_calls))`."""
    return frozenset((row.method, row.path) for row in namespace.values() if isinstance(row, Route))
