"""The model and the mode of an agent's session, by whichever of ACP's ways this agent offers."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from clawdforge.jsonrpc.rpc import RpcError
from clawdforge.wire.base import Json
from clawdforge.wire.json_bounds import write_briefly

MAX_CHOICES: Final = 5000
MAX_NAME_CHARS: Final = 1000
"""Agents list their models and modes; longer lists and names are nobody's, and would be searched in vain."""

Call = Callable[[str, Json], Awaitable[Json]]


class SessionControls:
    """Made from what the agent said when it opened the session."""

    def __init__(self, session_id: str, settings: Json, call: Call) -> None:
        self._session = {"sessionId": session_id}
        self._call = call
        self._options = _dicts(settings.get("configOptions"))
        self._models = settings.get("models")
        modes = settings.get("modes")
        self._modes = _dicts(modes.get("availableModes")) if isinstance(modes, dict) else []
        self._first_mode = modes.get("currentModeId") if isinstance(modes, dict) else None

    def model(self) -> str | None:
        """The model that the agent says it uses by itself."""
        option = self._option("model")
        current = option.get("currentValue") if option is not None else None
        if current is None and isinstance(self._models, dict):
            current = self._models.get("currentModelId")
        return current if isinstance(current, str) else None

    async def set_model(self, model: str) -> str | None:
        """Why the agent would not take it, or None. An agent that offers no choice is left alone."""
        option = self._option("model")
        try:
            if option is not None:
                value = _match(_choices(option), "value", model)
                params = {**self._session, "configId": option.get("id"), "value": value}
                await self._call("session/set_config_option", params)
            elif isinstance(self._models, dict):
                known = _dicts(self._models.get("availableModels"))
                params = {**self._session, "modelId": _match(known, "modelId", model)}
                await self._call("session/set_model", params)
        except RpcError as error:
            return f"it did not take the model {model}: {error.describe()}"
        return None

    async def set_plan_mode(self, on: bool) -> bool:
        """False where the agent has no such mode, or will not change to it."""
        if self._modes:
            return await self._switch(
                on,
                "session/set_mode",
                {},
                "modeId",
                [(m.get("id"), m) for m in self._modes],
                self._first_mode,
            )
        option = self._option("mode")
        if option is None:
            return False
        values = [(choice.get("value"), choice) for choice in _choices(option)]
        fields = {"configId": option.get("id")}
        return await self._switch(
            on, "session/set_config_option", fields, "value", values, option.get("currentValue")
        )

    async def _switch(
        self, on: bool, method: str, fields: Json, key: str, modes: list[tuple[Any, Json]], first: Any
    ) -> bool:
        plans = [mode for mode, described in modes if _is_plan(mode, described)]
        others = [mode for mode, _ in modes if mode not in plans]
        if not plans or not others:
            return False
        target = plans[0] if on else first if first in others else others[0]
        try:
            await self._call(method, {**self._session, **fields, key: target})
        except RpcError:
            return False
        return True

    def _option(self, category: str) -> Json | None:
        found = [o for o in self._options if o.get("category") == category]
        return next(iter(found or [o for o in self._options if o.get("id") == category]), None)


def _is_plan(mode: Any, described: Json) -> bool:
    return "plan" in _lower(mode) or "plan" in _lower(described.get("name", ""))


def _choices(option: Json) -> list[Json]:
    """An option's values, which may come in groups."""
    found: list[Json] = []
    for item in _dicts(option.get("options")):
        found += _dicts(item.get("options")) if "options" in item else [item]
    return found


def _match(choices: list[Json], key: str, wanted: str) -> str:
    """The agent's own id for what a person wrote; as written where it is not in the list."""
    for choice in choices:
        if wanted.lower() in (_lower(choice.get(key)), _lower(choice.get("name"))):
            return write_briefly(choice.get(key), MAX_NAME_CHARS)
    return wanted


def _dicts(value: Any) -> list[Json]:
    items = value[:MAX_CHOICES] if isinstance(value, list) else []
    return [item for item in items if isinstance(item, dict)]


def _lower(value: Any) -> str:
    return write_briefly(value, MAX_NAME_CHARS).lower()
