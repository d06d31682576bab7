"""What a server has beside sessions: files, one-shot runs, search, agents, personas, tokens, its health."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from clawdforge.client import _calls as calls
from clawdforge.client._files import Outgoing
from clawdforge.client._sync.transport import Transport
from clawdforge.client._waits import open_file, write
from clawdforge.client.results import RunResult

if TYPE_CHECKING:
    from datetime import date

    from clawdforge.client.models import (
        AgentInfo,
        AppPermission,
        Budget,
        BudgetPeriodWord,
        BudgetScopeWord,
        BudgetThenWord,
        FileReply,
        Health,
        LimitsReply,
        LoginCode,
        PermissionModeWord,
        Persona,
        Ready,
        ScopeWord,
        SearchHit,
        SharedMessages,
        SharedSession,
        TokenInfo,
        TokenReply,
        UsageByWord,
        UsageRow,
    )


class Catalog:
    """The half of a client that is not about one session."""

    transport: Transport

    def run(
        self,
        prompt: str,
        *,
        model: str | None = None,
        files: Sequence[str] | None = None,
        timeout_secs: float | None = None,
    ) -> RunResult:
        """One prompt, one answer, no session."""
        body = {
            "prompt": calls.check_prompt(prompt),
            "model": model,
            "files": None if files is None else list(files),
            "timeout_secs": timeout_secs,
        }
        return self.transport.call(calls.RUN(body=body, wait_secs=timeout_secs))

    def upload(
        self,
        file: str | PathLike[str] | BinaryIO,
        *,
        name: str | None = None,
        progress: Callable[[int, int | None], None] | None = None,
    ) -> FileReply:
        """Send a file; its `file_token` goes into the `files` of a turn.

        `progress` is called with the bytes sent so far and the size, which is None when it is unknown.
        """
        if not isinstance(file, str | PathLike):
            return self._upload(file, name or Path(str(getattr(file, "name", "upload"))).name, progress)
        path = Path(fspath(file))
        with open_file(path, "rb") as opened:
            return self._upload(opened, name or path.name, progress)

    def _upload(
        self, file: BinaryIO, name: str, progress: Callable[[int, int | None], None] | None
    ) -> FileReply:
        outgoing = Outgoing(file, progress)
        return self.transport.call(calls.UPLOAD(files={"file": (name, outgoing)}))

    def download(self, file_token: str) -> bytes:
        """The content of a file, whole."""
        return self.transport.call(calls.DOWNLOAD(file_token))

    def download_to(self, file_token: str, path: str | PathLike[str]) -> int:
        """The content of a file, piece by piece into `path`; how many bytes it has."""
        with self.transport.open(calls.DOWNLOAD(file_token)) as chunks:
            return _save(chunks, Path(fspath(path)))

    def delete_file(self, file_token: str) -> None:
        self.transport.call(calls.DELETE_FILE(file_token))

    def search(self, query: str, *, page_size: int | None = None) -> Iterator[SearchHit]:
        """Messages of all sessions that hold these words, best first, page by page."""
        if not query:
            raise ValueError("the query is empty")
        return self.transport.pages(
            lambda at: calls.SEARCH(params={"q": query, "cursor": at, "limit": page_size})
        )

    def pending_permissions(self, *, page_size: int | None = None) -> Iterator[AppPermission]:
        """The undecided permission requests of all your sessions, oldest first, page by page."""
        return self.transport.pages(
            lambda at: calls.PENDING(params={"state": "pending", "cursor": at, "limit": page_size})
        )

    def usage_by(
        self,
        *by: UsageByWord,
        from_day: date | str | None = None,
        to_day: date | str | None = None,
        page_size: int | None = None,
    ) -> Iterator[UsageRow]:
        """What your turns have used by `day` (of UTC), `agent` and `model`; by default of the last 30 days.

        Both days are counted, and there may be at most 366 between them. Nothing that is undone or purged
        is taken back from it.
        """
        params = calls.name_days(by, from_day, to_day, page_size)
        return self.transport.pages(lambda at: calls.USAGE_ROWS(params={**params, "cursor": at}))

    def agents(self) -> list[AgentInfo]:
        """What can be run here, and whether its program is installed."""
        return self.transport.call(calls.AGENTS())

    def limits(self) -> LimitsReply:
        """This app's limits on what it may use at one time, and what it uses now."""
        return self.transport.call(calls.LIMITS())

    def personas(self) -> list[Persona]:
        return self.transport.call(calls.PERSONAS())

    def get_persona(self, name: str) -> Persona:
        return self.transport.call(calls.GET_PERSONA(name))

    def put_persona(
        self,
        name: str,
        *,
        agent: str,
        model: str | None = None,
        permission_mode: PermissionModeWord | None = None,
        instructions: str | None = None,
        plan_mode: bool | None = None,
    ) -> Persona:
        """Make a persona, or replace it: an agent with a model, a permission mode and instructions."""
        body = {
            "agent": agent,
            "model": model,
            "permission_mode": permission_mode,
            "instructions": instructions,
            "plan_mode": plan_mode,
        }
        return self.transport.call(calls.PUT_PERSONA(name, body=body))

    def delete_persona(self, name: str) -> None:
        self.transport.call(calls.DELETE_PERSONA(name))

    def tokens(self) -> list[TokenInfo]:
        """The tokens of your app, without their secrets; needs the scope `admin`."""
        return self.transport.call(calls.OWN_TOKENS())

    def create_token(
        self,
        *,
        scopes: Sequence[ScopeWord] | None = None,
        expires_in_secs: int | None = None,
        note: str | None = None,
    ) -> TokenReply:
        """Create a token of your app with no scope that yours lacks. Its text is shown only this once."""
        body = {
            "scopes": None if scopes is None else list(scopes),
            "expires_in_secs": expires_in_secs,
            "note": note,
        }
        return self.transport.call(calls.CREATE_OWN_TOKEN(body=body))

    def revoke_token(self, token_id: str) -> None:
        """Revoke a token of your app and end its open streams."""
        self.transport.call(calls.REVOKE_OWN_TOKEN(token_id))

    def shared(self) -> SharedSession:
        """What a share link shows; the client's token is that of the link."""
        return self.transport.call(calls.SHARED())

    def shared_messages(
        self,
        *,
        after: int | None = None,
        before: int | None = None,
        tail: bool | None = None,
        limit: int | None = None,
    ) -> SharedMessages:
        """A page of the transcript that a share link shows; the client's token is that of the link."""
        params = {"after": after, "before": before, "tail": tail, "limit": limit}
        return self.transport.call(calls.SHARED_MESSAGES(params=params))

    def login_code(self) -> LoginCode:
        """A code that logs a browser in as your token does: once, and within a minute."""
        return self.transport.call(calls.LOGIN_CODE())

    def budgets(self) -> list[Budget]:
        """What this app, its tokens and its sessions may spend, and what is left of it."""
        return self.transport.call(calls.BUDGETS())

    def set_budget(
        self,
        *,
        scope: BudgetScopeWord = "app",
        id: str | None = None,  # noqa: A002 - the field's name on the wire
        period: BudgetPeriodWord = "day",
        max_tokens: int | None = None,
        max_cost_usd: float | None = None,
        share_tokens: int | None = None,
        share_cost_usd: float | None = None,
        warn_at: float | None = None,
        then: BudgetThenWord = "refuse",
    ) -> Budget:
        """Limit what your app, or one of its tokens or sessions, may spend; needs the scope `admin`.

        `id` names the token or the session. The operator's budgets hold as well.
        """
        body = {
            "scope": scope,
            "id": id,
            "period": period,
            "max_tokens": max_tokens,
            "max_cost_usd": max_cost_usd,
            "share_tokens": share_tokens,
            "share_cost_usd": share_cost_usd,
            "warn_at": warn_at,
            "then": then,
        }
        return self.transport.call(calls.SET_BUDGET(body=body))

    def remove_budget(self, budget_id: str) -> None:
        """Remove a budget that your app has set itself."""
        self.transport.call(calls.REMOVE_BUDGET(budget_id))

    def healthz(self) -> Health:
        """Whether the server is up, and what it is."""
        return self.transport.call(calls.HEALTHZ())

    def readyz(self) -> Ready:
        """Whether the server can work; if its store does not answer, `ok` is false and `reason` says why."""
        return self.transport.call(calls.READYZ())

    def metrics(self) -> str:
        """Metrics in the text format of Prometheus; needs the admin token."""
        return self.transport.call(calls.METRICS())


def _save(chunks: Iterator[bytes], path: Path) -> int:
    with open_file(path, "wb") as file:
        return sum([write(file, chunk) for chunk in chunks])
