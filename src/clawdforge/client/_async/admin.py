"""What the operator's token may do: apps, tokens, sweeping, the audit log, usage."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from clawdforge.client import _calls as calls
from clawdforge.client._async.transport import AsyncTransport

if TYPE_CHECKING:
    from datetime import date

    from clawdforge.client.models import (
        AdminUsage,
        AppInfo,
        AuditEntry,
        AuditVerdict,
        Budget,
        BudgetPeriodWord,
        BudgetScopeWord,
        BudgetThenWord,
        DiskReply,
        Node,
        Pause,
        PauseReply,
        ResumeReply,
        ScopeWord,
        StuckReply,
        SweepReply,
        TokenInfo,
        TokenReply,
        UsageByWord,
        UsageRow,
    )


class AsyncAdmin:
    """`forge.admin`; needs a client that was made with the admin token, or one over the operator's socket."""

    def __init__(self, http: AsyncTransport) -> None:
        self._http = http

    async def apps(self) -> list[AppInfo]:
        return await self._http.call(calls.APPS())

    async def put_app(
        self,
        app_name: str,
        *,
        limits: Mapping[str, Any] | None = None,
        workspace_roots: Sequence[str | PathLike[str]] | None = None,
        mcp_servers: Mapping[str, Mapping[str, Any]] | None = None,
        secrets: Mapping[str, str] | None = None,
    ) -> AppInfo:
        """Make an app, or replace its limits, or the folders in which it may choose working directories.

        `mcp_servers` are replaced as a whole, `secrets` one by one; an empty secret is removed. What is left
        out stays as it is.
        """
        roots = None if workspace_roots is None else [fspath(root) for root in workspace_roots]
        body = {"app_name": app_name, "limits": limits, "workspace_roots": roots}
        body |= {"mcp_servers": mcp_servers, "secrets": secrets}
        return await self._http.call(calls.PUT_APP(body=body))

    async def tokens(self, app_name: str | None = None) -> list[TokenInfo]:
        """The tokens of one app or of all, without their secrets."""
        return await self._http.call(calls.TOKENS(params={"app_name": app_name}))

    async def create_token(
        self,
        app_name: str,
        *,
        scopes: Sequence[ScopeWord] | None = None,
        expires_in_secs: int | None = None,
        note: str | None = None,
    ) -> TokenReply:
        """Create a token. Its text is shown only this once; without `scopes` it may do everything."""
        body = {
            "app_name": app_name,
            "scopes": None if scopes is None else list(scopes),
            "expires_in_secs": expires_in_secs,
            "note": note,
        }
        return await self._http.call(calls.CREATE_TOKEN(body=body))

    async def revoke_token(self, token_id: str) -> None:
        """Revoke a token and end its open streams."""
        await self._http.call(calls.REVOKE_TOKEN(token_id))

    async def pauses(self) -> list[Pause]:
        """What is paused, the widest pause first."""
        return await self._http.call(calls.PAUSES())

    async def pause(
        self,
        *,
        app_name: str | None = None,
        agent: str | None = None,
        reason: str | None = None,
        stop: bool = False,
    ) -> PauseReply:
        """Stop turns from starting: all, those of an app, or those of an agent. It is in effect on return.

        With `stop` running turns and runs are cancelled, and this waits until they have ended.
        """
        body = {"app_name": app_name, "agent": agent, "reason": reason, "stop": stop or None}
        return await self._http.call(calls.PAUSE(body=body))

    async def resume(self, *, app_name: str | None = None, agent: str | None = None) -> ResumeReply:
        """End a pause, and start what waits there; without a name, end the pause of everything."""
        return await self._http.call(calls.RESUME(body={"app_name": app_name, "agent": agent}))

    def budgets(self, app_name: str | None = None) -> AsyncIterator[Budget]:
        """What apps may spend, and what is left of it: of one app or of all, yours and their own."""
        return self._http.pages(lambda at: calls.ANY_BUDGETS(params={"app_name": app_name, "after": at}))

    async def set_budget(
        self,
        app_name: str,
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
        """Limit what an app, or one of its tokens or sessions, may spend. The app cannot loosen it.

        `id` names the token or the session. What was spent of a budget that is changed stays spent.
        """
        body = {
            "app_name": app_name,
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
        return await self._http.call(calls.SET_ANY_BUDGET(body=body))

    async def remove_budget(self, budget_id: str) -> None:
        """Remove a budget, whoever has set it."""
        await self._http.call(calls.REMOVE_ANY_BUDGET(budget_id))

    async def sweep(self) -> SweepReply:
        """Close and delete now what is due, instead of at the next sweep."""
        return await self._http.call(calls.SWEEP())

    async def stuck(self, secs: float = 60.0) -> StuckReply:
        """The sessions whose work has waited for the same thing for `secs`, and what for."""
        return await self._http.call(calls.STUCK(params={"secs": secs}))

    async def nodes(self) -> list[Node]:
        """The servers that share one database, the first to start first."""
        return await self._http.call(calls.NODES())

    async def drain(self, node: str) -> Node:
        """Have a server leave its sessions to the others, each at its next boundary; `node` is its id.

        `is_drained` of `nodes()` says when nothing is left there. It answers requests all the while.
        """
        return await self._http.call(calls.DRAIN(node))

    async def undrain(self, node: str) -> Node:
        """Take back a drain: the server begins turns again."""
        return await self._http.call(calls.UNDRAIN(node))

    async def disk(
        self, app_name: str | None = None, *, limit: int | None = None, cursor: str | None = None
    ) -> DiskReply:
        """What each app stores, by form; with `app_name`, that app and its largest sessions.

        `next` of the reply is the cursor of the next page of sessions.
        """
        params = {"app_name": app_name, "limit": limit, "cursor": cursor}
        return await self._http.call(calls.DISK(params=params))

    def audit(self, *, app_name: str | None = None, after: int | None = None) -> AsyncIterator[AuditEntry]:
        """The audit log in order, page by page."""
        return self._http.pages(lambda at: calls.AUDIT(params={"app_name": app_name, "after": at}), after)

    async def verify(self, head: str | None = None) -> AuditVerdict:
        """Whether the audit log is intact; with a `head` noted before, whether its end is still there too."""
        return await self._http.call(calls.VERIFY_AUDIT(params={"head": head}))

    async def usage(self) -> AdminUsage:
        """What each app has used."""
        return await self._http.call(calls.ADMIN_USAGE())

    def usage_by(
        self,
        *by: UsageByWord,
        from_day: date | str | None = None,
        to_day: date | str | None = None,
        page_size: int | None = None,
    ) -> AsyncIterator[UsageRow]:
        """As `forge.usage_by`, over all apps; `app` tells them apart."""
        params = calls.name_days(by, from_day, to_day, page_size)
        return self._http.pages(lambda at: calls.ADMIN_USAGE_ROWS(params={**params, "cursor": at}))
