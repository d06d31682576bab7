"""Which agents can be used: built-in entries, the operator's own, and the list that callers see."""
