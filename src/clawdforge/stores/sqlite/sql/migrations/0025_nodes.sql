-- Servers that share this database, each under a name of its own for every start; what only one of them does; and what
-- one wishes of another that holds a session.
CREATE TABLE members (
    node       TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    folder     TEXT NOT NULL,
    version    TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    beat       INTEGER NOT NULL,
    state      TEXT NOT NULL
);
CREATE TABLE duties (
    name TEXT PRIMARY KEY,
    node TEXT NOT NULL
);
CREATE TABLE wishes (
    wish_id    TEXT PRIMARY KEY,
    app_name   TEXT NOT NULL,
    session_id TEXT NOT NULL,
    node       TEXT NOT NULL,
    kind       TEXT NOT NULL,
    wished_at  INTEGER NOT NULL,
    turn_index INTEGER,
    rollback   INTEGER NOT NULL
);
CREATE INDEX wishes_of_node ON wishes (node);
ALTER TABLE reservations ADD COLUMN node TEXT;
ALTER TABLE sessions ADD COLUMN folder TEXT;
