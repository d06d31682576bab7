-- Files that every node can have. A piece is named before it is put anywhere, and used before it counts; what was
-- published of a session is what another node begins with. A session's home is current in one data folder.
CREATE TABLE blobs (
    place      TEXT PRIMARY KEY,
    app_name   TEXT NOT NULL,
    digest     TEXT NOT NULL,
    size       INTEGER NOT NULL,
    state      TEXT NOT NULL,
    touched_at INTEGER NOT NULL
);
CREATE INDEX blobs_by_digest ON blobs (app_name, digest);
CREATE INDEX blobs_unused ON blobs (touched_at, place) WHERE state <> 'used';
CREATE TABLE blob_data (
    place    TEXT PRIMARY KEY,
    app_name TEXT NOT NULL,
    data     BLOB NOT NULL
);
CREATE TABLE blob_uses (
    place    TEXT NOT NULL,
    owner    TEXT NOT NULL,
    app_name TEXT NOT NULL,
    PRIMARY KEY (place, owner)
);
CREATE INDEX blob_uses_of_owner ON blob_uses (owner);
CREATE TABLE publications (
    session_id       TEXT PRIMARY KEY,
    turn_index       INTEGER NOT NULL,
    agent_session_id TEXT NOT NULL,
    home             TEXT NOT NULL,
    workspace        TEXT,
    published_at     INTEGER NOT NULL
);
ALTER TABLE sessions ADD COLUMN home_at TEXT;
ALTER TABLE files ADD COLUMN pieces TEXT NOT NULL DEFAULT '[]';
