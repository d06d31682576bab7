"""Finds the persona for a name: one of the app's own, or the built-in one."""

from clawdforge.core.models.rows import PersonaRow
from clawdforge.core.ports import View
from clawdforge.wire.errors import PersonaNotFound

BUILTIN = "default-interactive"


def find_persona(view: View, name: str | None, default_agent: str) -> PersonaRow:
    """The persona of that name; without a name, the built-in one."""
    if name is None or name == BUILTIN:
        return builtin_persona(view.app, default_agent)
    persona = view.persona(name)
    if persona is None:
        raise PersonaNotFound
    return persona


def builtin_persona(app: str, default_agent: str) -> PersonaRow:
    return PersonaRow(app_name=app, name=BUILTIN, agent=default_agent, created_at=0)
