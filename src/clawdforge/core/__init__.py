"""The product: sessions, turns, log, history. Knows `wire` and its own ports, nothing else."""
