"""The client that blocks: made from `_async` by `scripts/unasync.py`; change that one."""
