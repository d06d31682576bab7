-- Files that every node can have. A piece is named before it is put anywhere, and used before it counts; what was
-- published of a session is what another node begins with. A session's home is current in one data folder.
CREATE TABLE blobs (
    place      word PRIMARY KEY,
    app_name   word NOT NULL,
    digest     word NOT NULL,
    size       bigint NOT NULL,
    state      word NOT NULL,
    touched_at bigint NOT NULL
);
CREATE INDEX blobs_by_digest ON blobs (app_name, digest);
CREATE INDEX blobs_unused ON blobs (touched_at, place) WHERE state <> 'used';
CREATE TABLE blob_data (
    place    word PRIMARY KEY,
    app_name word NOT NULL,
    data     bytea NOT NULL
);
CREATE TABLE blob_uses (
    place    word NOT NULL,
    owner    word NOT NULL,
    app_name word NOT NULL,
    PRIMARY KEY (place, owner)
);
CREATE INDEX blob_uses_of_owner ON blob_uses (owner);
CREATE TABLE publications (
    session_id       word PRIMARY KEY,
    turn_index       bigint NOT NULL,
    agent_session_id word NOT NULL,
    home             word NOT NULL,
    workspace        word,
    published_at     bigint NOT NULL
);
ALTER TABLE sessions ADD COLUMN home_at word;
ALTER TABLE files ADD COLUMN pieces word NOT NULL DEFAULT '[]';
