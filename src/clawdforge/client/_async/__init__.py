"""The client that awaits. `scripts/unasync.py` makes the blocking one, `_sync`, from these files."""
