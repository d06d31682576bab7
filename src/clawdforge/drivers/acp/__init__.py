"""Agents that speak ACP over stdio: the connection, the session in it, the turn, what an agent may ask."""
