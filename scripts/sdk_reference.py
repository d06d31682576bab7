"""Makes docs/reference/sdk.md from the code: `python scripts/sdk_reference.py`."""  # noqa: INP001 - a script, not a package

import dataclasses
import inspect
import re
from pathlib import Path

from clawdforge import client
from clawdforge.client import errors, models
from clawdforge.client._sync.admin import Admin
from clawdforge.client._sync.raw import Raw

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "sdk.md"
WIDTH = 110

OPENING = """\
# The Python SDK

Made from the code by `scripts/sdk_reference.py`. The [guide](../guides/sdk.md) shows how it is used.

`from clawdforge import Forge` blocks, `from clawdforge import AsyncForge` awaits. Both have the same methods
with the same arguments: in the second, put `await` before a call, `async for` before an iterator,
`async with` before a block. A method whose result is an iterator reads page after page, as far as you read.

Values are the shapes of [the wire](wire.md), in `clawdforge.client.models`. Fields that a newer server adds
are kept, never refused.
"""


def summary(value: object) -> str:
    return inspect.cleandoc(getattr(value, "__doc__", None) or "")


def signature(name: str, function: object) -> str:
    """As one reads it: no module names, no `self`."""
    text = str(inspect.signature(function))  # type: ignore[arg-type]
    text = re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])", "", text).replace("EllipsisType", "...")
    text = re.sub(r"\(self(?:, )?", "(", text).replace(") -> None", ")")
    return "\n".join(fold(f"{name}{text}".replace("'", "")))


def fold(line: str) -> list[str]:
    """Break a long signature between its parameters."""
    cuts = [found.start() + 1 for found in re.finditer(r", (?=\w+: |\*)", line) if found.start() < WIDTH]
    if len(line) <= WIDTH or not cuts:
        return [line]
    return [line[: cuts[-1]], *fold("    " + line[cuts[-1] :].strip())]


def section(title: str, kind: type, prefix: str) -> list[str]:
    lines = [f"## {title}", "", summary(kind), ""]
    for name, function in inspect.getmembers(kind, inspect.isfunction):
        if name.startswith("_") and name != "__init__":
            continue
        shown = title if name == "__init__" else f"{prefix}.{name}"
        lines += ["```python", signature(shown, function), "```", ""]
        if name != "__init__" and summary(function):
            lines += [summary(function), ""]
    return lines


def dataclass_section(title: str, kind: type) -> list[str]:
    fields = [f"`{field.name}`" for field in dataclasses.fields(kind)]
    lines = [f"## {title}", "", summary(kind), "", f"Fields: {', '.join(fields)}.", ""]
    for name, function in inspect.getmembers(kind, inspect.isroutine):
        if not name.startswith("_"):
            lines += ["```python", signature(name, function), "```", "", summary(function), ""]
    return lines


def error_section() -> list[str]:
    tree = summary(errors).split("\n\n")
    lines = ["## Errors", "", "In `clawdforge.client.errors`.", "", "```text"]
    lines += [line.removeprefix("    ") for line in tree[1].splitlines()]
    lines += ["```", "", *tree[2].splitlines(), "", "| class | code | |", "|---|---|---|"]
    for code, kind in errors.BY_CODE.items():
        lines.append(f"| `{kind.__name__}` | `{code}` | {summary(kind)} |")
    return lines


def page() -> str:
    lines = [
        OPENING,
        *section("Forge", client.Forge, "forge"),
        *section("Session", client.Session, "session"),
        *section("TurnStream", client.TurnStream, "stream"),
        *dataclass_section("TurnResult", models.TurnResult),
        *dataclass_section("RunResult", models.RunResult),
        *section("Admin", Admin, "forge.admin"),
        *section("Raw", Raw, "forge.raw"),
        *error_section(),
    ]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
