"""The parts of the reference that are written by the code: settings, models, routes and agents' keys."""

import asyncio
import inspect
import json
from itertools import groupby
from pathlib import Path
from typing import Any, cast, get_args

from pydantic import BaseModel

from clawdforge.core.services.all import Services
from clawdforge.drivers.registry.builtin import load_builtin
from clawdforge.http.app import ForgeAPI, build_asgi
from clawdforge.http.routing import OpenRoute
from clawdforge.http.settings import HttpSettings
from clawdforge.settings import list_settings
from clawdforge.settings.kinds import Face
from clawdforge.wire.base import Reply
from tests.wire_samples import models

REFERENCE = Path(__file__).parent.parent.parent / "docs" / "reference"
BEGIN = "<!-- written by scripts/golden: begin -->\n"
END = "<!-- written by scripts/golden: end -->\n"


def settings_table() -> str:
    lines = ["| variable | type | default | what it does |", "|---|---|---|---|"]
    lines += [f"| `{row.variable}` | {row.type} | {row.default} | {row.about} |" for row in list_settings()]
    return "\n".join(lines) + "\n"


def keys_table() -> str:
    """What brings each built-in agent, and what signs it in."""
    lines = ["| agent | how to get it | signed in by one of | or by its own login, kept in |"]
    lines.append("|---|---|---|---|")
    for spec in load_builtin():
        keys = ", ".join(f"`{name}`" for name in spec.keys) or "-"
        files = ", ".join(f"`~/{name}`" for name in spec.credentials) or "-"
        how = spec.install if spec.install.startswith("install ") else f"`{spec.install}`"
        if not spec.install:
            how, keys = "built in", "nothing"
        lines.append(f"| {spec.name} | {how} | {keys} | {files} |")
    return "\n".join(lines) + "\n"


def routes() -> list[OpenRoute]:
    """The route table of a server with every door open. Building it needs no services, only serving does."""
    asgi: Any = build_asgi(cast(Services, None), HttpSettings(stopping=asyncio.Event(), faces=get_args(Face)))
    while not isinstance(asgi, ForgeAPI):
        asgi = asgi._asgi
    return list(asgi.state.table)


def routes_reference() -> str:
    """Every route by the tag of its router: what its handler says of itself, and its parameters."""
    parts = []
    tagged = sorted(routes(), key=lambda route: str(route.about["tags"][0]))
    for tag, group in groupby(tagged, key=lambda route: str(route.about["tags"][0])):
        lines = [f"## {tag.capitalize()}\n", "| route | | parameters |", "|---|---|---|"]
        lines += [_route_row(route) for route in group]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _route_row(route: OpenRoute) -> str:
    about = first_words(route)
    takes = route.plan()
    parameters = ", ".join(f"`{one.alias}`" for one in (*takes.query, *takes.headers))
    return f"| `{'/'.join(sorted(route.methods or ()))} {route.path}` | {about} | {parameters} |"


def first_words(route: OpenRoute) -> str:
    """The first paragraph of the handler's docstring, on one line."""
    return inspect.cleandoc(route.endpoint.__doc__ or "").split("\n\n")[0].replace("\n", " ")


def models_reference() -> str:
    """Every body by module: its first line of words and its fields."""
    parts: list[str] = []
    module = ""
    for model in models():
        name = model.__module__.rsplit(".", 1)[1]
        if name == "base":
            continue
        if name != module:
            module = name
            parts.append(f"## {module}\n")
        parts.append(f"### {model.__name__}\n\n{_about(model)}{_fields(model)}")
    return "\n".join(parts)


def _about(model: type[BaseModel]) -> str:
    text = inspect.cleandoc(model.__dict__.get("__doc__") or "").split("\n\n")[0].replace("\n", " ")
    return f"{text}\n\n" if text else ""


def _fields(model: type[BaseModel]) -> str:
    schema = model.model_json_schema(mode="serialization" if issubclass(model, Reply) else "validation")
    required = set(schema.get("required", ()))
    lines = ["| field | type | default |", "|---|---|---|"]
    made = {field.alias or name: field for name, field in model.model_fields.items() if field.default_factory}
    for name, field in schema.get("properties", {}).items():
        value = made[name].get_default(call_default_factory=True) if name in made else field.get("default")
        default = "required" if name in required else f"`{_text(value)}`"
        lines.append(f"| `{name}` | {_type(field)} | {default} |")
    return "\n".join(lines) + "\n"


def _text(value: Any) -> str:
    if isinstance(value, dict | BaseModel):
        return "{}"
    if isinstance(value, list | tuple):
        return "[]"
    return json.dumps(value) if value is None or isinstance(value, bool) else str(value)


def _type(field: dict[str, Any]) -> str:
    if "$ref" in field:
        return str(field["$ref"]).rsplit("/", 1)[1]
    if "anyOf" in field:
        return " or ".join(_type(one) for one in field["anyOf"])
    if "const" in field:
        return f"`{_text(field['const'])}`"
    if "enum" in field:
        return ", ".join(f"`{one}`" for one in field["enum"])
    kind = str(field.get("type", "any"))
    if kind == "array":
        return f"list of {_type(field.get('items', {}))}"
    return kind


def between_marks(text: str) -> str:
    """What stands between the marks of a page."""
    return text.split(BEGIN, 1)[1].split(END, 1)[0]


def replaced(text: str, part: str) -> str:
    """The page with another part between its marks."""
    head, rest = text.split(BEGIN, 1)
    return head + BEGIN + part + END + rest.split(END, 1)[1]
