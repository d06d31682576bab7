-- Tokens that read one session, up to a turn: its messages up to `last_seq`, and the rest of `up_to_turn` itself.
CREATE TABLE share_links (
    share_id   TEXT PRIMARY KEY,
    app_name   TEXT NOT NULL,
    session_id TEXT NOT NULL,
    hash       BLOB NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    up_to_turn INTEGER NOT NULL,
    last_seq   INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX share_links_of_session ON share_links (session_id, created_at, share_id);
CREATE TRIGGER share_links_purged AFTER DELETE ON sessions BEGIN
    DELETE FROM share_links WHERE session_id = old.session_id;
END;
