"""A plain LangGraph graph, a model and its tools, that understands the suite of drivers."""

import asyncio
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import interrupt

from tests.support.graphs.model import ScriptedModel


@tool("tool")
async def look(name: str, delay_ms: int = 0) -> str:
    """Look at something for a while."""
    await asyncio.sleep(delay_ms / 1000)
    return f"{name} was looked at"


@tool("ask")
async def ask(title: str) -> str:
    """Ask before doing it."""
    return f"permission: {'allow' if interrupt({'question': title}) else 'reject'}"


async def _model(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
    if state["messages"][-1].content == "traceparent":
        return {"messages": [AIMessage(str(config.get("metadata", {}).get("traceparent")))]}
    return {"messages": [await ScriptedModel().ainvoke(state["messages"])]}


def graph() -> StateGraph[Any, Any, Any, Any]:
    """A model and its tools."""
    builder = StateGraph(MessagesState)
    builder.add_node("model", _model)
    builder.add_node("tools", ToolNode([look, ask]))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "model")
    return builder
