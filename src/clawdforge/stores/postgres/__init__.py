"""The Postgres store: the rows of one server in a database."""
