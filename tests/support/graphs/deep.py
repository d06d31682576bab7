"""A deepagents agent over the scripted model: its own tools, and one that is reviewed."""

from typing import Any

from deepagents import create_deep_agent
from langchain_core.tools import tool

from tests.support.graphs.model import ScriptedModel
from tests.support.graphs.scripted import look


@tool("delete")
async def delete(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"


def deep(checkpointer: Any) -> Any:
    """A deepagents agent whose `delete` is reviewed."""
    return create_deep_agent(
        model=ScriptedModel(),
        tools=[delete, look],
        system_prompt="You follow scripts.",
        interrupt_on={"delete": True},
        checkpointer=checkpointer,
    )
