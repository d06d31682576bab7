"""How many share one event loop, one interpreter and one machine: turns, paces, and a watch on both."""
