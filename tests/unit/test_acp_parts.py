"""The small parts of the ACP driver: what a replay proves, what a turn cost, how a mode is set."""

import pytest

from clawdforge.drivers.acp import handshake
from clawdforge.drivers.acp.controls import SessionControls
from clawdforge.drivers.acp.handshake import Replay
from clawdforge.jsonrpc.rpc import RpcError
from clawdforge.wire.base import Json


def user(text: str, **more: object) -> Json:
    return {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": text}, **more}


AGENT: Json = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "yes"}}


def replayed(*updates: Json) -> list[str] | None:
    replay = Replay()
    for update in updates:
        replay.take(update)
    return replay.texts()


def test_chunks_of_one_message_are_one_prompt() -> None:
    assert replayed(user("a"), user("b"), AGENT, user("c"), AGENT, AGENT) == ["ab", "c"]


def test_message_ids_tell_prompts_apart_that_were_never_answered() -> None:
    assert replayed(user("a", messageId="1"), user("b", messageId="1"), user("c", messageId="2")) == [
        "ab",
        "c",
    ]


def test_content_that_is_no_text_counts_as_an_empty_prompt() -> None:
    assert replayed({"sessionUpdate": "user_message_chunk", "content": [1]}, AGENT, user("x")) == ["", "x"]


def test_a_replay_that_is_too_long_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "MAX_REPLAY_BYTES", 1000)
    assert replayed(user("x" * 2000), user("y"), AGENT, user("z")) is None


class Calls:
    def __init__(self, *, refuse: bool = False) -> None:
        self.made: list[tuple[str, Json]] = []
        self._refuse = refuse

    async def __call__(self, method: str, params: Json) -> Json:
        self.made.append((method, params))
        if self._refuse:
            raise RpcError(-32602, "Unknown model")
        return {}


GROUPED: Json = {
    "configOptions": [
        {"id": "m", "category": "model", "options": [{"options": [{"value": "opus-5", "name": "Opus"}]}]},
        {
            "id": "mode",
            "category": "mode",
            "currentValue": "code",
            "options": [
                {"value": "plan-only", "name": "P"},
                {"value": "x", "name": "X"},
                {"value": "code", "name": "C"},
            ],
        },
    ]
}


async def test_a_model_is_set_by_config_option_before_the_older_way() -> None:
    calls = Calls()
    controls = SessionControls("s", {**GROUPED, "models": {"availableModels": []}}, calls)
    assert await controls.set_model("opus") is None
    assert calls.made == [
        ("session/set_config_option", {"sessionId": "s", "configId": "m", "value": "opus-5"})
    ]


async def test_a_model_is_set_by_the_older_way_where_only_that_is_offered() -> None:
    calls = Calls()
    settings = {
        "models": {"availableModels": [{"modelId": "g-2", "name": "Gemini 2"}], "currentModelId": "g-1"}
    }
    await SessionControls("s", settings, calls).set_model("gemini 2")
    await SessionControls("s", settings, calls).set_model("not in the list")
    assert calls.made == [
        ("session/set_model", {"sessionId": "s", "modelId": "g-2"}),
        ("session/set_model", {"sessionId": "s", "modelId": "not in the list"}),
    ]


async def test_an_agent_without_choices_is_left_alone_and_a_refusal_is_told() -> None:
    calls = Calls()
    assert await SessionControls("s", {"models": None, "modes": 3}, calls).set_model("x") is None
    assert not await SessionControls("s", {}, calls).set_plan_mode(on=True)
    assert calls.made == []
    refusing = SessionControls("s", GROUPED, Calls(refuse=True))
    assert await refusing.set_model("x") == "it did not take the model x: Unknown model"
    assert not await refusing.set_plan_mode(on=True)


async def test_plan_mode_goes_there_and_back_by_modes_or_by_option() -> None:
    modes = [{"id": "a", "name": "Ask"}, {"id": "b", "name": "Plan first"}, {"id": "c", "name": "Code"}]
    calls = Calls()
    controls = SessionControls("s", {"modes": {"currentModeId": "c", "availableModes": modes}}, calls)
    assert await controls.set_plan_mode(on=True)
    assert await controls.set_plan_mode(on=False)
    assert [params["modeId"] for _, params in calls.made] == ["b", "c"]
    calls = Calls()
    controls = SessionControls("s", {"modes": {"currentModeId": "b", "availableModes": modes}}, calls)
    assert await controls.set_plan_mode(on=False)
    assert [params["modeId"] for _, params in calls.made] == ["a"]
    calls = Calls()
    controls = SessionControls("s", GROUPED, calls)
    assert await controls.set_plan_mode(on=True)
    assert await controls.set_plan_mode(on=False)
    assert [params["value"] for _, params in calls.made] == ["plan-only", "code"]
