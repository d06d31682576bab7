"""Connections before and beside their requests: the porch, the door, lanes, and who is at the other end."""
