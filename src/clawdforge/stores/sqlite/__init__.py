"""The SQLite store: one file, one writing thread, reads beside it."""
