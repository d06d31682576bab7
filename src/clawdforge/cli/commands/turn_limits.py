"""The options for limits that a prompt carries, for every command that sends one and waits."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

AMOUNT: Final = click.FloatRange(min=0)
SECONDS: Final = click.FloatRange(min=0, min_open=True)
COUNT: Final = click.IntRange(min=0)
OPTIONS: Final[tuple[tuple[str, Any, str, str], ...]] = (
    ("max_cost_usd", AMOUNT, "USD", "Stop the turn when it has cost more."),
    ("max_tokens", COUNT, "N", "Stop the turn when it has used more tokens."),
    ("max_seconds", SECONDS, "SECS", "Stop the turn after this time; the answer so far counts."),
    ("max_tool_calls", COUNT, "N", "Stop the turn when it makes more tool calls."),
)


def limit_options(command: Command) -> Command:
    for name, kind, metavar, about in reversed(OPTIONS):
        flag = f"--{name.replace('_', '-')}"
        command = click.option(flag, name, type=kind, metavar=metavar, help=about)(command)
    return command


def given_limits(flags: Mapping[str, Any]) -> dict[str, Any]:
    """What the SDK is given of them."""
    return {name: flags[name] for name, *_ in OPTIONS}
