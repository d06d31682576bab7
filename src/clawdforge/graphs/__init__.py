"""A program that turns a LangGraph graph into an agent: it speaks ACP on stdio, one thread per session."""
