-- Which folder a session works in (device, inode and birth; null until it is next used), which folders an app
-- may name, and where the data folder lies: one that was copied elsewhere holds other folders of the same names.

ALTER TABLE sessions ADD COLUMN workspace_identity TEXT;
ALTER TABLE apps ADD COLUMN workspace_roots TEXT NOT NULL DEFAULT '[]';

CREATE TABLE place (
    only     INTEGER PRIMARY KEY CHECK (only = 1),
    identity TEXT NOT NULL
);

CREATE INDEX sessions_by_folder ON sessions (cwd, app_name, session_id)
    WHERE closed_at IS NULL AND deleted_at IS NULL;
CREATE INDEX sessions_by_identity ON sessions (workspace_identity, app_name, session_id)
    WHERE closed_at IS NULL AND deleted_at IS NULL AND workspace_identity IS NOT NULL;
