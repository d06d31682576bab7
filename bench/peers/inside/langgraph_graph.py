"""A graph of one node that speaks, for the servers that host graphs. It runs in their own environment."""

from typing import Any

from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph
from speaking import speak


async def answer(state: MessagesState) -> dict[str, Any]:
    """Each chunk goes out as it is, without what the messages of a model would carry beside it."""
    write, said = get_stream_writer(), []
    async for piece in speak(str(state["messages"][-1].content)):
        write({"text": piece})
        said.append(piece)
    return {"messages": [{"role": "assistant", "content": "".join(said)}]}


builder = StateGraph(MessagesState)
builder.add_node("answer", answer)
builder.add_edge(START, "answer")
builder.add_edge("answer", END)
graph = builder.compile()
