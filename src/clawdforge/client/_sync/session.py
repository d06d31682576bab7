"""One session from the caller's side: turns, streams, events, permissions, forks, closing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

from clawdforge.client import _calls as calls
from clawdforge.client._sync.connection import Connection
from clawdforge.client._sync.history import History
from clawdforge.client._sync.stream import TurnStream, follow
from clawdforge.client.errors import ForgeError, NotFound
from clawdforge.client.results import TurnResult

if TYPE_CHECKING:
    from clawdforge.client._permissions import OnPermission
    from clawdforge.client.models import (
        AnyEvent,
        CancelReply,
        DecisionWord,
        IfBusyWord,
        Permission,
        PermissionState,
        SessionState,
        Turn,
        TurnAccepted,
        TurnChanged,
    )


class Session(History):
    """A handle on a session. As a context manager it closes the session on the way out.

    It keeps no state but its id, its agent and whether it closed the session: the server is the truth,
    and `state()` asks it.
    """

    def __init__(self, forge: Connection, info: Mapping[str, Any]) -> None:
        self.forge = forge
        self.session_id = str(info["session_id"])
        self.agent = str(info.get("agent") or "")
        self.info = info
        self.closed = info.get("closed_at") is not None
        self._http = forge.transport

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.session_id} agent={self.agent!r} closed={self.closed}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except ForgeError as failure:
            if error is None:
                raise
            error.add_note(f"and the session {self.session_id} could not be closed: {failure}")

    def close(self) -> None:
        """Close the session. Once it is closed, or gone, calling this again sends nothing."""
        if self.closed:
            return
        with suppress(NotFound):
            self._http.call(calls.CLOSE_SESSION(self.session_id))
        self.closed = True

    def state(self) -> SessionState:
        """What the server knows about the session now."""
        return self.forge.get_session(self.session_id)

    def fork(
        self,
        *,
        title: str | None = None,
        after_turn: int | None = None,
        expected_head: int | None = None,
    ) -> Session:
        """A new session that shares the past up to `after_turn`, or up to now."""
        body = {"title": title, "after_turn": after_turn, "expected_head": expected_head}
        return Session(self.forge, self._http.call(calls.FORK(self.session_id, body=body)))

    def turn(
        self,
        prompt: str,
        files: Sequence[str] | None = None,
        timeout_secs: float | None = None,
        *,
        if_busy: IfBusyWord | None = None,
        expected_head: int | None = None,
        max_cost_usd: float | None = None,
        max_tokens: int | None = None,
        max_seconds: float | None = None,
        max_tool_calls: int | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
        on_permission: OnPermission | None = None,
    ) -> TurnResult:
        """Run one prompt and wait for the whole answer.

        A connection that drops on the way is made again with the same key, so the prompt runs once.
        `timeout` (or `timeout_secs`) ends the turn on the server, never the session. A turn that crosses one
        of its limits (`max_…`) is stopped; `stopped_by` of the result names it, and what was said is kept.
        `on_permission` is called with each `Permission` that the agent asks for and answers with a decision,
        True (once) or False, or None to leave it to somebody else.
        """
        timeout_secs = timeout_secs if timeout is None else timeout
        if on_permission is not None:
            with self.stream(
                prompt,
                files,
                timeout_secs,
                if_busy=if_busy,
                expected_head=expected_head,
                max_cost_usd=max_cost_usd,
                max_tokens=max_tokens,
                max_seconds=max_seconds,
                max_tool_calls=max_tool_calls,
                idempotency_key=idempotency_key,
                on_permission=on_permission,
            ) as stream:
                return (stream.result()).raise_for_outcome()
        limits = _limits(max_cost_usd, max_tokens, max_seconds, max_tool_calls)
        body = _turn_body(prompt, files, timeout_secs, if_busy, expected_head, limits)
        key = idempotency_key or str(uuid4())
        return self._http.call(calls.TURN(self.session_id, body=body, key=key, wait_secs=timeout_secs))

    def submit(
        self,
        prompt: str,
        files: Sequence[str] | None = None,
        timeout_secs: float | None = None,
        *,
        if_busy: IfBusyWord | None = None,
        expected_head: int | None = None,
        max_cost_usd: float | None = None,
        max_tokens: int | None = None,
        max_seconds: float | None = None,
        max_tool_calls: int | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> TurnAccepted:
        """Submit a prompt and return without waiting for the answer; the prompt is on stable storage then."""
        timeout_secs = timeout_secs if timeout is None else timeout
        limits = _limits(max_cost_usd, max_tokens, max_seconds, max_tool_calls)
        body = _turn_body(prompt, files, timeout_secs, if_busy, expected_head, limits)
        return self._http.call(calls.SUBMIT(self.session_id, body=body, key=idempotency_key or str(uuid4())))

    @contextmanager
    def stream(
        self,
        prompt: str,
        files: Sequence[str] | None = None,
        timeout_secs: float | None = None,
        *,
        if_busy: IfBusyWord | None = None,
        expected_head: int | None = None,
        max_cost_usd: float | None = None,
        max_tokens: int | None = None,
        max_seconds: float | None = None,
        max_tool_calls: int | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
        on_permission: OnPermission | None = None,
    ) -> Iterator[TurnStream]:
        """Run one prompt and read its events as they happen, through lost connections and restarts.

        `on_permission` is asked before the event of a request is handed out, as in `turn`.
        """
        accepted = self.submit(
            prompt,
            files,
            timeout_secs,
            if_busy=if_busy,
            expected_head=expected_head,
            max_cost_usd=max_cost_usd,
            max_tokens=max_tokens,
            max_seconds=max_seconds,
            max_tool_calls=max_tool_calls,
            idempotency_key=idempotency_key,
            timeout=timeout,
        )
        # `head` is the turn's first event; of a turn that was accepted before, nobody knows where it began.
        after = 0 if accepted.replayed else accepted.head - 1
        made = TurnStream(self._http, self.session_id, accepted.turn_index, after, on_permission)
        with made as stream:
            yield stream

    def retry_turn(
        self,
        prompt: str | None = None,
        *,
        files: bool | None = None,
        expected_head: int | None = None,
        on_permission: OnPermission | None = None,
    ) -> TurnResult:
        """Take back the last turn, send its prompt or another one in its place, and wait for the answer.

        With `files` the workspace is put back too. `retry` does the same without waiting.
        """
        cut = self.retry(run=True, prompt=prompt, files=files, expected_head=expected_head)
        with self.watch(cut.turn_index or 0, cut.head, on_permission) as stream:
            return (stream.result()).raise_for_outcome()

    def watch(self, turn_index: int, after: int = 0, on_permission: OnPermission | None = None) -> TurnStream:
        """Read the events of an existing turn, from the event after `after` up to its end."""
        return TurnStream(self._http, self.session_id, turn_index, after, on_permission)

    def cancel(self, *, queued: bool = False, turn: int | None = None) -> CancelReply:
        """Stop the running turn, and with `queued` also those that wait. What was said is kept.

        With `turn`, stop only that one, running or queued; if it has ended, nothing happens.
        """
        body = {"queued": queued or None, "turn": turn}
        return self._http.call(calls.CANCEL(self.session_id, body=body))

    def change_turn(
        self,
        turn_index: int,
        *,
        prompt: str | None = None,
        files: Sequence[str] | None = None,
        position: int | None = None,
        expected_prompt: str | None = None,
    ) -> TurnChanged:
        """Change a turn that waits in the queue: its prompt, its files, or its place, 0 for the next.

        Raises TurnNotQueued once it has begun, and Conflict if its prompt is no longer `expected_prompt`.
        """
        body = {
            "prompt": prompt,
            "files": None if files is None else list(files),
            "position": position,
            "expected_prompt": expected_prompt,
        }
        return self._http.call(calls.CHANGE_TURN(self.session_id, turn_index, body=body))

    def withdraw(self, turn_index: int) -> CancelReply:
        """Take a turn out of the queue."""
        return self._http.call(calls.WITHDRAW(self.session_id, turn_index))

    def turns(self, *, after: int | None = None) -> Iterator[Turn]:
        """The session's turns in order, page by page."""
        return self._http.pages(lambda at: calls.TURNS(self.session_id, params={"after": at}), after)

    def events(self, after: int = 0, *, page_size: int | None = None) -> Iterator[AnyEvent]:
        """The log from the event after `after` up to now, page by page."""
        return self._http.pages(
            lambda at: calls.EVENTS(self.session_id, params={"after": at, "limit": page_size}), after
        )

    def follow(self, after: int = 0) -> Iterator[AnyEvent]:
        """The log from the event after `after`, and then every new event as it happens, for ever."""
        return follow(self._http, self.session_id, after)

    def permissions(self, *, state: PermissionState | None = "pending") -> list[Permission]:
        """The agent's undecided requests; `state` asks for `decided` or `expired` ones, None for all."""
        return self._http.call(calls.PERMISSIONS(self.session_id, params={"state": state}))

    def decide(
        self, permission_id: str, decision: DecisionWord, *, option_id: str | None = None
    ) -> Permission:
        """Answer a request: `allow_once`, `allow_always` or `reject`."""
        body = {"decision": decision, "option_id": option_id}
        return self._http.call(calls.DECIDE(self.session_id, permission_id, body=body))


def _turn_body(
    prompt: str,
    files: Sequence[str] | None,
    timeout_secs: float | None,
    if_busy: IfBusyWord | None,
    expected_head: int | None,
    limits: Mapping[str, float | None],
) -> dict[str, Any]:
    return {
        "prompt": calls.check_prompt(prompt),
        "files": None if files is None else list(files),
        "timeout_secs": timeout_secs,
        "if_busy": if_busy,
        "expected_head": expected_head,
        **limits,
    }


def _limits(
    max_cost_usd: float | None, max_tokens: int | None, max_seconds: float | None, max_tool_calls: int | None
) -> dict[str, float | None]:
    return {
        "max_cost_usd": max_cost_usd,
        "max_tokens": max_tokens,
        "max_seconds": max_seconds,
        "max_tool_calls": max_tool_calls,
    }
