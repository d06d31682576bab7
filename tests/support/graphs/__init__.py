"""Graphs for tests: a real LangGraph graph and a real deepagents agent over a model that follows a script."""
