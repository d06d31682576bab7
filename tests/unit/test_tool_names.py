"""The name by which a permission is remembered: bounded, and another one for another command."""

from clawdforge.drivers.acp.client import MAX_TOOL_CHARS, shorten_name


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
