"""The words of a turn that was cut off are read off its events as they were sent, whatever they hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawdforge.core.models.events import draft_of
from clawdforge.drivers.acp.updates import read_message
from clawdforge.wire.base import Json
from clawdforge.wire.event import join_words, number

WORDS = ['"content":', '\\"content\\":', "}", '"', "\\", "\u2028", "{}", ',"content":"x"', "zß水🌍"]


def event(update: Json, **more: object) -> bytes:
    message = {"jsonrpc": "2.0", "method": "session/update", "params": {"update": update}, **more}
    return number(7, draft_of(read_message(message), 1, 1_794_735_000_123_456).body)


def chunk(text: str, **more: object) -> bytes:
    return event({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}, **more)


@given(st.lists(st.one_of(st.sampled_from(WORDS), st.text()), min_size=1))
def test_words_are_joined_as_they_were_said(texts: list[str]) -> None:
    sent = [text.encode("utf-8", "replace").decode() for text in texts]
    assert join_words([chunk(text) for text in sent]) == "".join(sent)


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        (chunk("x", content="forged"), "ax"),
        (chunk("x", content={"a": 1}), "ax"),
        (chunk("x")[:-1], None),
        (b"{}", None),
        (b"", None),
        (b'{"seq":1,"content":1}', None),
    ],
)
def test_a_forged_key_changes_nothing_and_what_is_damaged_is_left_to_be_decoded(
    odd: bytes, words: str | None
) -> None:
    assert join_words([chunk("a"), odd]) == words
