"""The name by which a permission is remembered: bounded, and another one for another command."""

from typing import Any

import pytest

from clawdforge.drivers.acp.call_names import MAX_TOOL_CHARS, name_call, shorten_name


def test_a_short_name_stays_as_it_is() -> None:
    assert shorten_name("x" * MAX_TOOL_CHARS) == "x" * MAX_TOOL_CHARS


def test_long_commands_with_the_same_beginning_have_different_names() -> None:
    """One that was allowed for good allowed every other that began like it."""
    beginning = "make " + "x" * MAX_TOOL_CHARS
    harmless, harmful = shorten_name(beginning + " test"), shorten_name(beginning + "; rm -rf ~")
    assert harmless != harmful
    assert len(harmless) == len(harmful) == MAX_TOOL_CHARS
    assert harmless == shorten_name(beginning + " test")


def test_broken_text_has_a_name_too() -> None:
    assert len(shorten_name("\ud800" * 300)) == MAX_TOOL_CHARS


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ({"title": "Bash", "kind": "execute", "rawInput": {"command": "npm test"}}, "Bash: npm test"),
        ({"title": "`npm test`", "kind": "execute", "rawInput": {"command": "npm test"}}, "`npm test`"),
        ({"title": "Run npm test", "rawInput": {"cmd": "npm test"}}, "Run npm test"),
        (
            {"title": "npm test…", "rawInput": {"command": "npm test; rm -rf ~"}},
            "npm test…: npm test; rm -rf ~",
        ),
        ({"title": "Shell", "rawInput": {"command": ["bash", "-lc", "ls | wc"]}}, "Shell: ls | wc"),
        ({"title": "Shell", "rawInput": {"command": ["rm", "a b"]}}, "Shell: rm 'a b'"),
        ({"title": "Delete file", "kind": "delete", "rawInput": {"path": "/w/a"}}, "Delete file: /w/a"),
        ({"title": "Delete /w/a", "kind": "delete", "locations": [{"path": "/w/a"}]}, "Delete /w/a"),
        ({"title": "Move", "kind": "move", "rawInput": {"from": "a", "to": "b"}}, "Move: a → b"),
        (
            {"title": "Fetch", "kind": "fetch", "rawInput": {"url": "https://a.example/x?y"}},
            "Fetch: a.example",
        ),
        ({"title": "Fetch", "kind": "fetch", "rawInput": {"url": "http://[bad"}}, "Fetch: http://[bad"),
        ({"title": "Edit file", "kind": "edit", "rawInput": {"path": "/w/a"}}, "Edit file"),
        ({"kind": "read"}, "read"),
        ({"title": 7, "toolCallId": "c", "rawInput": [1]}, "c"),
        ({"title": "x", "kind": "delete", "rawInput": {"path": 3}, "locations": [7, {"path": None}]}, "x"),
        ({}, "tool"),
    ],
)
def test_a_name_shows_what_makes_the_call_another_one(call: dict[str, Any], name: str) -> None:
    """What is allowed for good was all that an agent called `Bash`."""
    assert name_call(call) == name
