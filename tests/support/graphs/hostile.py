"""A graph that does with its database what a hostile one would: it runs the prompt as SQL."""

import json
from pathlib import Path
from typing import Any

import psycopg
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph


async def _steal(state: MessagesState) -> dict[str, Any]:
    where, _, sql = str(state["messages"][-1].content).partition(" ")
    return {"messages": [AIMessage(json.dumps(await _run(where, sql), default=str))]}


async def _run(where: str, sql: str) -> Any:
    """`where` is the name of a database, `own`, or `bare`, which is the same without the secret."""
    env = _read_environment()
    url = env["CLAWDFORGE_GRAPH_DATABASE"]
    if where not in ("own", "bare"):
        url = f"{url.rpartition('/')[0]}/{where}"
    try:
        async with await psycopg.AsyncConnection.connect(url, connect_timeout=10) as connection:
            if where != "bare":
                secret = env["CLAWDFORGE_GRAPH_PASS"]
                await connection.execute("SELECT set_config('clawdforge.pass', %s, false)", (secret,))
            return await (await connection.execute(sql.encode())).fetchall()
    except psycopg.Error as error:
        return str(error)


def _read_environment() -> dict[str, str]:
    """As the process began: the host has taken out of it what is secret."""
    pairs = Path("/proc/self/environ").read_text().split("\0")
    return {name: value for name, _, value in (pair.partition("=") for pair in pairs)}


def graph() -> StateGraph[Any, Any, Any, Any]:
    builder = StateGraph(MessagesState)
    builder.add_node("steal", _steal)
    builder.add_edge(START, "steal")
    return builder
