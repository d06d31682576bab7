-- Servers that share this database, each under a name of its own for every start; what only one of them does; and what
-- one wishes of another that holds a session.
CREATE TABLE members (
    node       word PRIMARY KEY,
    name       word NOT NULL,
    folder     word NOT NULL,
    version    word NOT NULL,
    started_at bigint NOT NULL,
    beat       bigint NOT NULL,
    state      word NOT NULL
);
CREATE TABLE duties (
    name word PRIMARY KEY,
    node word NOT NULL
);
CREATE TABLE wishes (
    wish_id    word PRIMARY KEY,
    app_name   word NOT NULL,
    session_id word NOT NULL,
    node       word NOT NULL,
    kind       word NOT NULL,
    wished_at  bigint NOT NULL,
    turn_index bigint,
    rollback   bigint NOT NULL
);
CREATE INDEX wishes_of_node ON wishes (node);
ALTER TABLE reservations ADD COLUMN node word;
CREATE INDEX sessions_held ON sessions (holder) WHERE holder IS NOT NULL AND deleted_at IS NULL;
ALTER TABLE sessions ADD COLUMN folder word;
