"""What can be done with a session's past: read, cut, restore, clear, compact, rename, export."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from clawdforge.client import _calls as calls
from clawdforge.client._sync.transport import Transport

if TYPE_CHECKING:
    from clawdforge.client.models import (
        ChangeBaseWord,
        CutReply,
        Export,
        HistoryReply,
        Message,
        MessagePage,
        OnInterruptWord,
        PermissionModeWord,
        PurgeReply,
        RestoreReply,
        RetentionWord,
        SessionState,
        Share,
        ShareReply,
        TreeReply,
        TurnChanges,
        TurnDiff,
        UsageReply,
    )


class History:
    """The half of a session that looks back. With `expected_head` a call fails if the session moved on."""

    session_id: str
    closed: bool
    _http: Transport

    def messages(self, *, all: bool | None = None, after: int | None = None) -> Iterator[Message]:  # noqa: A002 - the name on the wire
        """The transcript in order, page by page; `all` shows archived messages too."""
        return self._http.pages(
            lambda at: calls.MESSAGES(self.session_id, params={"all": all, "after": at}), after
        )

    def message_page(
        self,
        *,
        tail: bool | None = None,
        before: int | None = None,
        after: int | None = None,
        around: int | None = None,
        limit: int | None = None,
        all: bool | None = None,  # noqa: A002 - the name on the wire
    ) -> MessagePage:
        """One page of the transcript, oldest first: its end, or what is before, after or around a seq.

        Its `previous` is the `before` of the page above, its `next` the `after` of the page below.
        """
        asked = {"tail": tail, "before": before, "after": after, "around": around}
        return self._http.call(
            calls.MESSAGE_PAGE(self.session_id, params={**asked, "limit": limit, "all": all})
        )

    def tree(self, *, after: int | None = None, limit: int | None = None) -> TreeReply:
        """A page of the session's turns, each with the turn that it follows, and its forks."""
        return self._http.call(calls.TREE(self.session_id, params={"after": after, "limit": limit}))

    def undo(
        self, turns: int | None = None, *, files: bool | None = None, expected_head: int | None = None
    ) -> CutReply:
        """Take back the last turn or turns, in the transcript and in the agent's memory."""
        body = {"turns": turns, "files": files, "expected_head": expected_head}
        return self._http.call(calls.UNDO(self.session_id, body=body))

    def redo(self, *, files: bool | None = None, expected_head: int | None = None) -> RestoreReply:
        """Bring back what the last undo took."""
        body = {"files": files, "expected_head": expected_head}
        return self._http.call(calls.REDO(self.session_id, body=body))

    def retry(
        self,
        *,
        run: bool | None = None,
        prompt: str | None = None,
        files: bool | None = None,
        expected_head: int | None = None,
    ) -> CutReply:
        """Cut the last exchange; with `run` send its prompt, or `prompt`, again at once."""
        body = {"run": run, "prompt": prompt, "files": files, "expected_head": expected_head}
        return self._http.call(calls.RETRY(self.session_id, body=body))

    def clear(self, *, expected_head: int | None = None) -> HistoryReply:
        """Archive the messages and give the agent an empty memory."""
        return self._http.call(calls.CLEAR(self.session_id, body={"expected_head": expected_head}))

    def compact(self, *, prompt: str | None = None, expected_head: int | None = None) -> HistoryReply:
        """Replace the past by a summary of it; `prompt` asks for the summary in your own words."""
        body = {"prompt": prompt, "expected_head": expected_head}
        return self._http.call(calls.COMPACT(self.session_id, body=body))

    def patch(
        self,
        *,
        title: str | None = None,
        meta: Mapping[str, Any] | None = None,
        pinned: bool | None = None,
        labels: Sequence[str] | None = None,
        agent: str | None = None,
        model: str | None = None,
        permission_mode: PermissionModeWord | None = None,
        on_interrupt: OnInterruptWord | None = None,
        retention: RetentionWord | None = None,
        plan_mode: bool | None = None,
        fresh_context: bool | None = None,
        expected_head: int | None = None,
    ) -> SessionState:
        """Change what is given and leave the rest; returns the new state.

        With another model the agent keeps its memory; with `fresh_context` it starts anew and is told the
        transcript, as another agent is.
        """
        body = {
            "title": title,
            "meta": meta,
            "pinned": pinned,
            "labels": None if labels is None else list(labels),
            "agent": agent,
            "model": model,
            "permission_mode": permission_mode,
            "on_interrupt": on_interrupt,
            "retention": retention,
            "plan_mode": plan_mode,
            "fresh_context": fresh_context,
            "expected_head": expected_head,
        }
        return self._http.call(calls.PATCH_SESSION(self.session_id, body=body))

    def rename(self, title: str) -> SessionState:
        """Give the session another title; returns the new state."""
        return self.patch(title=title)

    def reopen(self) -> SessionState:
        """Open a closed session again; returns the new state."""
        state = self._http.call(calls.REOPEN(self.session_id))
        self.closed = False
        return state

    def let_agent_go(self) -> None:
        """Say that no prompt follows soon: the agent ends once no turn runs. The next prompt starts it."""
        self._http.call(calls.LET_GO(self.session_id))

    def purge(self) -> PurgeReply:
        """Delete the session with its files for good."""
        reply = self._http.call(calls.PURGE(self.session_id))
        self.closed = True
        return reply

    def usage(self) -> UsageReply:
        """Tokens and money: what the agent reported, and what was estimated."""
        return self._http.call(calls.USAGE(self.session_id))

    def turn_changes(self, turn_index: int, *, base: ChangeBaseWord = "turn") -> TurnChanges:
        """The files that a turn changed; with `base="first"`, all turns up to it.

        `reason` says why nothing is known.
        """
        return self._http.call(calls.TURN_CHANGES(self.session_id, turn_index, params={"base": base}))

    def turn_diff(self, turn_index: int, path: str, *, base: ChangeBaseWord = "turn") -> TurnDiff:
        """How a turn changed one file, by its `path` in `turn_changes`, as a unified diff."""
        params = {"base": base, "path": path}
        return self._http.call(calls.TURN_DIFF(self.session_id, turn_index, params=params))

    def share(self, *, expires_in_secs: int | None = None, up_to_turn: int | None = None) -> ShareReply:
        """A link that shows this session to everybody who has it, for a week unless you say otherwise.

        It shows what is there now, or only the turns up to one. Its token is shown only this once.
        """
        body = {"expires_in_secs": expires_in_secs, "up_to_turn": up_to_turn}
        return self._http.call(calls.SHARE(self.session_id, body=body))

    def shares(self) -> list[Share]:
        """The valid links to this session, without their tokens."""
        return self._http.call(calls.SHARES(self.session_id))

    def revoke_share(self, share_id: str) -> None:
        """Revoke a link; it stops working at once."""
        self._http.call(calls.REVOKE_SHARE(self.session_id, share_id))

    def export(self, *, events: bool | None = None) -> Export:
        """The session on its own; `forge.import_session(export=…)` reads it back."""
        return self._http.call(calls.EXPORT(self.session_id, params={"format": "json", "events": events}))

    def export_markdown(self) -> str:
        """The transcript as a page to read."""
        return self._http.call(calls.EXPORT_TEXT(self.session_id, params={"format": "md"}))

    def export_html(self) -> str:
        """The transcript as an HTML file to keep and to pass on; it has no scripts and loads nothing."""
        return self._http.call(calls.EXPORT_TEXT(self.session_id, params={"format": "html"}))
