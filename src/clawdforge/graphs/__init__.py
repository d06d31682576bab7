"""A program that makes a LangGraph graph an agent: it speaks ACP on stdio, one thread for each session."""
