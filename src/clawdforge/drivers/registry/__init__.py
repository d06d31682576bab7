"""Which agents there are: built-in entries, what the operator adds, and what callers are told."""
