-- What each server tells of itself with its beats: what runs there, and digests of the settings that all should share.
ALTER TABLE members ADD COLUMN tells TEXT NOT NULL DEFAULT '{}';
-- Codes that log a browser in once, at whichever server it comes to. Where there is one server, it keeps them in memory.
CREATE TABLE login_codes (
    hash     BLOB PRIMARY KEY,
    app_name TEXT NOT NULL,
    token_id TEXT NOT NULL,
    ends_at  INTEGER NOT NULL
);
