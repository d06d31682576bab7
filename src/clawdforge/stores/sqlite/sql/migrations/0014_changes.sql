-- What a list of an app's sessions would show otherwise since a cursor: each session, and each request for a
-- permission, once, at its latest change. `permission_id` is empty for the session itself. Kept for a day.
CREATE TABLE app_changes (
    session_id    TEXT NOT NULL,
    permission_id TEXT NOT NULL DEFAULT '',
    app_name      TEXT NOT NULL,
    number        INTEGER NOT NULL,
    at            INTEGER NOT NULL,
    PRIMARY KEY (session_id, permission_id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX app_changes_in_order ON app_changes (app_name, number, at);

-- The last number that was given out in an app, and up to which some are forgotten.
CREATE TABLE change_counts (
    app_name  TEXT PRIMARY KEY,
    last      INTEGER NOT NULL DEFAULT 0,
    forgotten INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
