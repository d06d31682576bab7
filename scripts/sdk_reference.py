"""Makes docs/reference/sdk.md from the code: `python scripts/sdk_reference.py`."""  # noqa: INP001 - a script, not a package

import dataclasses
import inspect
import re
import textwrap
from pathlib import Path

from clawdforge import client
from clawdforge.client import errors, models
from clawdforge.client._reconnects import Reconnect
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
are kept, never refused. What is known about a session, a `SessionState` (the wire's `Session`), reads like a
dict as well: `state["title"]`, `state.get("title")`, `dict(state)`. An argument that is a `…Word` takes one
of the words of the wire, or the enum that has them.
"""

OWN_ERRORS = """\
`ForgeConnectionError` and `ForgeTimeout` mean that there was no answer; `StreamBroken` that a live stream
could not be taken up again, and its `last_seq` is where to go on; `UnexpectedReply` that this client cannot
read the answer; `NoServerKnown`, which is a `ValueError` too, that no address or no token was found, and its
`ServerNotStarted` that none could be started on this machine. With a `ForgeAPIError` the server said no: it
has `status_code`, `code`, `message`, `body` and `request_id`. After those that are marked, a call that is
safe to repeat is sent again."""


def summary(value: object) -> str:
    return inspect.cleandoc(getattr(value, "__doc__", None) or "")


def signature(name: str, function: object) -> str:
    """As one reads it: no module names, no `self`."""
    text = str(inspect.signature(function)).replace("'", "")  # type: ignore[arg-type]
    text = re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])", "", text)
    text = text.replace("EllipsisType", "...").replace("= Ellipsis", "= ...")
    text = re.sub(r"\(self(?:, )?", "(", text).replace(") -> None", ")")
    return "\n".join(fold(f"{name}{text}"))


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
    lines = ["## Errors", "", "In `clawdforge.client.errors`. Catch as much as you mean to:", ""]
    lines += ["```text", *tree(errors.ForgeError), "```", "", OWN_ERRORS, ""]
    lines += ["| class | code | status | sent again | |", "|---|---|---|---|---|"]
    for code, kind in errors.BY_CODE.items():
        again = "yes" if kind.is_passing else ""
        lines.append(f"| `{kind.__name__}` | `{code}` | {kind.status} | {again} | {summary(kind)} |")
    return lines


def find_below(kind: type) -> list[type]:
    """Those that callers see: the server and tests have classes of their own that derive from some."""
    return [found for found in kind.__subclasses__() if getattr(errors, found.__name__, None) is found]


def tree(kind: type, indent: str = "") -> list[str]:
    """The names of a class and of all that derive from it; those that have none below them share lines."""
    below = find_below(kind)
    leaves = [found.__name__ for found in below if not find_below(found)]
    inner = [found for found in below if find_below(found)]
    lines = [kind.__name__]
    for number, found in enumerate(inner, 1):
        last = number == len(inner) and not leaves
        first, *rest = tree(found, indent + "   ")
        lines += [f"{'└─' if last else '├─'} {first}", *(f"{' ' if last else '│'}  {line}" for line in rest)]
    wrapped = textwrap.wrap(", ".join(leaves), WIDTH - 10 - len(indent))
    return lines + [f"{'└─' if number == 0 else '  '} {line}" for number, line in enumerate(wrapped)]


def page() -> str:
    lines = [
        OPENING,
        *section("Forge", client.Forge, "forge"),
        *section("Session", client.Session, "session"),
        *section("TurnStream", client.TurnStream, "stream"),
        *dataclass_section("TurnResult", models.TurnResult),
        *dataclass_section("Reconnect", Reconnect),
        *dataclass_section("RunResult", models.RunResult),
        *section("Admin", Admin, "forge.admin"),
        *section("Raw", Raw, "forge.raw"),
        *error_section(),
    ]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
