"""Which lines of `acpx prompt` become a turn's events: lines as acpx 0.19.1 printed them, shortened."""

import json

import pytest

from clawdforge.drivers.acpx.stream import Part, PromptStream, describe_error

COLD = """
{"id":0,"method":"initialize","params":{"protocolVersion":1}}
{"id":0,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}
{"id":1,"method":"session/load","params":{"sessionId":"s"}}
{"method":"session/update","params":{"update":{"sessionUpdate":"user_message_chunk"}}}
{"method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"text":"old"}}}}
{"id":1,"result":{}}
"""
PROMPT = '{"id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}'
CHUNK = '{"method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk"}}}'
ANSWER = '{"id":2,"result":{"stopReason":"end_turn"}}'


def parts(*lines: str) -> tuple[list[Part], PromptStream]:
    stream = PromptStream()
    found = [json.loads(line) for text in lines for line in text.strip().splitlines()]
    return [stream.take(message) for message in found], stream


def test_what_opening_the_session_says_is_no_part_of_the_turn() -> None:
    """S0-111, X-02."""
    found, stream = parts(COLD, PROMPT, CHUNK, ANSWER)
    assert found == [Part.ASIDE] * 7 + [Part.EVENT, Part.ANSWER]
    assert not stream.forgot


def test_the_request_and_a_cancel_are_ours() -> None:
    cancel = '{"method":"session/cancel","params":{"sessionId":"s"}}'
    assert parts(PROMPT, CHUNK, cancel, ANSWER)[0] == [Part.ASIDE, Part.EVENT, Part.ASIDE, Part.ANSWER]


def test_what_comes_after_the_answer_is_late() -> None:
    assert parts(PROMPT, ANSWER, CHUNK)[0][-1] is Part.LATE


def test_our_answer_to_a_question_with_the_prompts_id_is_not_the_agents() -> None:
    question = '{"id":2,"method":"session/request_permission","params":{"options":[]}}'
    ours = '{"id":2,"result":{"outcome":{"outcome":"selected","optionId":"allow_once"}}}'
    found, _ = parts(PROMPT, question, ours, CHUNK, ANSWER)
    assert found == [Part.ASIDE, Part.ASIDE, Part.ASIDE, Part.EVENT, Part.ANSWER]


def test_a_request_for_a_file_is_said_by_the_agent_and_its_result_is_not() -> None:
    request = '{"id":7,"method":"fs/read_text_file","params":{"path":"a"}}'
    found, _ = parts(PROMPT, request, '{"id":7,"result":{"content":"x"}}', ANSWER)
    assert found == [Part.ASIDE, Part.EVENT, Part.ASIDE, Part.ANSWER]


def test_an_error_of_the_agent_is_the_answer_and_one_of_acpx_is_trouble() -> None:
    found, _ = parts(PROMPT, '{"id":2,"error":{"code":-32603,"message":"boo"}}')
    assert found[-1] is Part.ANSWER
    error = {
        "code": -32603,
        "message": "ACP agent disconnected",
        "data": {"detailCode": "AGENT_DISCONNECTED"},
    }
    found, stream = parts(PROMPT, CHUNK, json.dumps({"id": None, "error": error}))
    assert found[-1] is Part.ASIDE
    assert stream.trouble == "ACP agent disconnected (AGENT_DISCONNECTED)"


def test_an_empty_session_in_place_of_the_old_one_is_seen() -> None:
    new = '{"id":2,"method":"session/new","params":{}}'
    assert parts(COLD, new)[1].forgot
    assert not parts(PROMPT, new)[1].forgot


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ({"message": "no"}, "no"),
        ({"message": "no", "data": "why"}, "no: why"),
        ({"message": "no", "data": {"details": "d"}}, "no (d)"),
        ({}, "it failed without a reason"),
        (None, ""),
    ],
)
def test_an_error_is_told_in_the_words_of_who_sent_it(error: object, said: str) -> None:
    assert describe_error(error) == said
