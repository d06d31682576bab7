"""What an editor can choose about a session: its permission mode, its agent, its model."""

from collections.abc import Sequence
from typing import Any, Final

from clawdforge.client.models import AgentInfo, SessionState
from clawdforge.jsonrpc.rpc import INVALID_PARAMS, RpcError
from clawdforge.wire.base import Json
from clawdforge.wire.session import PermissionMode

PLAN: Final = "plan"
MODES: Final = (
    (PermissionMode.ASK, "Ask", "You decide whatever the agent asks for."),
    (PermissionMode.APPROVE_READS, "Approve reads", "Reading is allowed; you decide the rest."),
    (PermissionMode.APPROVE_ALL, "Approve all", "Whatever the agent asks for is allowed."),
    (PermissionMode.DENY_ALL, "Deny all", "Whatever the agent asks for is refused."),
    (PLAN, "Plan", "The agent plans and changes nothing, if it knows such a mode."),
)
AGENT: Final = "agent"
MODEL: Final = "model"
DEFAULT: Final = "default"
"""The model of a session that names none: the agent's own choice."""


def mode_of(state: SessionState) -> str:
    return PLAN if state.plan_mode else str(state.permission_mode)


def describe(state: SessionState, agents: Sequence[AgentInfo]) -> Json:
    """What `session/new` and its like answer beside the session."""
    modes = [{"id": str(mode), "name": name, "description": about} for mode, name, about in MODES]
    return {
        "modes": {"currentModeId": mode_of(state), "availableModes": modes},
        "configOptions": options_of(state, agents),
    }


def options_of(state: SessionState, agents: Sequence[AgentInfo]) -> list[Json]:
    names = {agent.name: agent.title or agent.name for agent in agents if agent.installed}
    names.setdefault(state.agent, state.agent)
    models = {DEFAULT: "The agent's own"} if state.model is None else {state.model: state.model}
    return [
        _select(AGENT, "Agent", state.agent, names),
        {**_select(MODEL, "Model", state.model or DEFAULT, models), "category": "model"},
    ]


def read_mode(params: Json) -> dict[str, Any]:
    """What `session/set_mode` changes about the session."""
    wanted = params.get("modeId")
    if wanted == PLAN:
        return {"plan_mode": True}
    if wanted not in [str(mode) for mode, *_ in MODES]:
        known = ", ".join(str(mode) for mode, *_ in MODES)
        raise RpcError(INVALID_PARAMS, f"there is no such mode; known are {known}")
    return {"permission_mode": wanted, "plan_mode": False}


def read_option(params: Json, state: SessionState) -> dict[str, Any]:
    """What `session/set_config_option` changes about the session; nothing where it is so already."""
    name, value = params.get("configId"), params.get("value")
    if name not in (AGENT, MODEL):
        raise RpcError(INVALID_PARAMS, f"there is no such option; known are {AGENT} and {MODEL}")
    if not isinstance(value, str) or not value:
        raise RpcError(INVALID_PARAMS, "value must be a string")
    if name == MODEL and value == DEFAULT:
        if state.model is not None:
            raise RpcError(INVALID_PARAMS, "a session that has a model keeps one; name another")
        return {}
    return {name: value}


def _select(name: str, title: str, current: str, values: dict[str, str]) -> Json:
    options = [{"value": value, "name": text} for value, text in values.items()]
    return {"id": name, "name": title, "type": "select", "currentValue": current, "options": options}
