"""Which of the lines of one `acpx prompt` are the turn's events.

acpx prints both directions of ACP, and on a cold start also how the session was opened. What counts is what
the agent said after the prompt was sent, up to and including its answer.
"""

from enum import Enum
from typing import Any, Final

from clawdforge.wire.base import Json

OURS: Final = frozenset(
    {
        "initialize",
        "authenticate",
        "logout",
        "session/new",
        "session/load",
        "session/resume",
        "session/list",
        "session/close",
        "session/delete",
        "session/fork",
        "session/prompt",
        "session/cancel",
        "session/set_mode",
        "session/set_model",
        "session/set_config_option",
        "$/cancel_request",
    }
)
"""Methods that go to the agent."""


class Part(Enum):
    ASIDE = "not part of the turn"
    EVENT = "said by the agent"
    ANSWER = "the prompt's own answer"
    LATE = "said by the agent after its answer"


class PromptStream:
    """Follows one prompt, line by line."""

    def __init__(self) -> None:
        self.forgot = False
        """acpx began an empty session in place of the one that it had."""

        self.trouble: str | None = None
        """What acpx itself said went wrong."""

        self._prompt: Any = None
        self._sent = False
        self._answered = False
        self._asked: list[Any] = []

    def take(self, message: Json) -> Part:
        method = message.get("method")
        if not isinstance(method, str):
            return self._response(message)
        if method in OURS:
            if method == "session/prompt" and not self._sent:
                self._sent, self._prompt = True, message.get("id")
            self.forgot = self.forgot or (method == "session/new" and not self._sent)
            return Part.ASIDE
        if message.get("id") is not None:
            self._asked.append(message["id"])
        if not self._sent or method == "session/request_permission":
            return Part.ASIDE
        return Part.LATE if self._answered else Part.EVENT

    def _response(self, message: Json) -> Part:
        """Ids of both directions overlap: an answer to the agent's own question is not the agent's."""
        number, result = message.get("id"), message.get("result")
        if number is None:
            self.trouble = describe_error(message.get("error")) or self.trouble
            return Part.ASIDE
        ends = isinstance(result, dict) and "stopReason" in result
        if number in self._asked and not ends:
            self._asked.remove(number)
            return Part.ASIDE
        if not self._sent or self._answered or number != self._prompt:
            return Part.ASIDE
        self._answered = True
        return Part.ANSWER


def describe_error(error: object) -> str:
    """A JSON-RPC error in the words of whoever sent it."""
    if not isinstance(error, dict):
        return ""
    said = str(error.get("message") or "it failed without a reason")
    data = error.get("data")
    if isinstance(data, str):
        return f"{said}: {data}"
    more = data.get("detailCode") or data.get("details") if isinstance(data, dict) else None
    return f"{said} ({more})" if more else said
