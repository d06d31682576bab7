"""What may happen, as plain functions over a transaction: no waiting, no task, and no port but the store."""
