"""Schedules: prompts that the server submits by itself, and what became of each of their times."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from clawdforge.client import _schedule_calls as calls
from clawdforge.client._async.transport import AsyncTransport
from clawdforge.client._calls import check_prompt

if TYPE_CHECKING:
    from clawdforge.client.models import MissedWord, Occurrence, OverlapWord, Schedule, SchedulePreview


class AsyncSchedules:
    """The part of a client that is about schedules."""

    transport: AsyncTransport

    def schedules(self, *, page_size: int | None = None) -> AsyncIterator[Schedule]:
        """Your app's schedules, oldest first."""
        return self.transport.pages(lambda at: calls.SCHEDULES(params={"cursor": at, "limit": page_size}))

    async def add_schedule(
        self,
        prompt: str,
        *,
        cron: str | None = None,
        at: str | None = None,
        timezone: str | None = None,
        session_id: str | None = None,
        session: Mapping[str, Any] | None = None,
        title: str | None = None,
        overlap: OverlapWord | None = None,
        missed: MissedWord | None = None,
    ) -> Schedule:
        """Have the server submit a prompt by itself: by `cron`, or once, `at` a time like `2026-12-01T09:00`.

        It goes into the session `session_id`, or each time into a new one, which is made from `session`: what
        `create_session` takes.
        """
        body = {
            "prompt": check_prompt(prompt),
            "cron": cron,
            "at": at,
            "timezone": timezone,
            "session_id": session_id,
            "session": None if session is None else dict(session),
            "title": title,
            "overlap": overlap,
            "missed": missed,
        }
        return await self.transport.call(calls.ADD_SCHEDULE(body=body))

    async def preview_schedule(
        self, *, cron: str | None = None, at: str | None = None, timezone: str | None = None
    ) -> SchedulePreview:
        """When a schedule with these times would come next, and its cron in words; nothing is made."""
        body = {"cron": cron, "at": at, "timezone": timezone}
        return await self.transport.call(calls.PREVIEW_SCHEDULE(body=body))

    async def get_schedule(self, schedule_id: str) -> Schedule:
        """One schedule; `next_at` says when it comes next."""
        return await self.transport.call(calls.SCHEDULE(schedule_id))

    async def change_schedule(
        self,
        schedule_id: str,
        *,
        prompt: str | None = None,
        cron: str | None = None,
        at: str | None = None,
        timezone: str | None = None,
        title: str | None = None,
        overlap: OverlapWord | None = None,
        missed: MissedWord | None = None,
        paused: bool | None = None,
    ) -> Schedule:
        """Change its prompt, its times or its rules, or pause and resume it; what you leave out stays."""
        body = {
            "prompt": prompt,
            "cron": cron,
            "at": at,
            "timezone": timezone,
            "title": title,
            "overlap": overlap,
            "missed": missed,
            "paused": paused,
        }
        return await self.transport.call(calls.CHANGE_SCHEDULE(schedule_id, body=body))

    async def remove_schedule(self, schedule_id: str) -> None:
        """With its history. The turns that it made stay."""
        await self.transport.call(calls.REMOVE_SCHEDULE(schedule_id))

    async def run_schedule(self, schedule_id: str, *, idempotency_key: str | None = None) -> Occurrence:
        """Submit its prompt now, whether it is on or not; the reply names the session and the turn."""
        key = idempotency_key or str(uuid4())
        return await self.transport.call(calls.RUN_SCHEDULE(schedule_id, key=key))

    def schedule_history(
        self, schedule_id: str, *, page_size: int | None = None
    ) -> AsyncIterator[Occurrence]:
        """What became of its times, newest first."""
        return self.transport.pages(
            lambda at: calls.SCHEDULE_HISTORY(schedule_id, params={"cursor": at, "limit": page_size})
        )
