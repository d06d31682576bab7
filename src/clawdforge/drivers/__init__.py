"""The code that speaks to agents: one module per kind, and what they share."""
