-- A page is written whole whatever has changed in it, so a turn costs as many as there are tables and indexes that it
-- touches. What follows makes them fewer.

-- Lists are sorted by `updated_at`, which moves with every event, and are of sessions that do the same. These columns
-- say how both stood, and since when no turn has run, when the session was last at rest: they and their indexes stand
-- still while it is at work. A list takes the few that are at work by themselves.
ALTER TABLE sessions ADD COLUMN listed_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN listed_as TEXT NOT NULL DEFAULT 'idle';
ALTER TABLE sessions ADD COLUMN idle_since INTEGER NOT NULL DEFAULT 0;
DROP INDEX sessions_listed;
DROP INDEX sessions_open;
DROP INDEX sessions_at_rest;
DROP INDEX sessions_idle;
DROP INDEX sessions_of_project;
DROP INDEX sessions_of_parent;
UPDATE sessions SET listed_at = updated_at, idle_since = coalesce(last_turn_at, created_at),
    listed_as = CASE WHEN activity IN ('interrupted', 'failed') THEN activity ELSE 'idle' END;
CREATE INDEX sessions_open ON sessions (app_name, listed_as, listed_at, session_id)
    WHERE deleted_at IS NULL AND closed_at IS NULL;
CREATE INDEX sessions_ended ON sessions (app_name, listed_as, listed_at, session_id)
    WHERE deleted_at IS NULL AND closed_at IS NOT NULL;
CREATE INDEX sessions_of_project ON sessions (app_name, project_key, listed_at, session_id)
    WHERE deleted_at IS NULL AND project_key IS NOT NULL;
CREATE INDEX sessions_of_parent ON sessions (app_name, parent_session_id, listed_at, session_id)
    WHERE deleted_at IS NULL AND parent_session_id IS NOT NULL;
CREATE INDEX sessions_idle ON sessions (idle_since)
    WHERE retention = 'ttl' AND closed_at IS NULL AND deleted_at IS NULL;
CREATE TRIGGER sessions_added AFTER INSERT ON sessions BEGIN
    UPDATE sessions SET listed_at = new.updated_at, idle_since = coalesce(new.last_turn_at, new.created_at),
        listed_as = CASE WHEN new.activity IN ('interrupted', 'failed') THEN new.activity ELSE 'idle' END
    WHERE rowid = new.rowid;
END;
CREATE TRIGGER sessions_rested AFTER UPDATE OF updated_at, activity, last_turn_at, created_at ON sessions
WHEN new.activity NOT IN ('queued', 'running', 'waiting') BEGIN
    UPDATE sessions SET listed_at = new.updated_at, idle_since = coalesce(new.last_turn_at, new.created_at),
        listed_as = CASE WHEN new.activity IN ('interrupted', 'failed') THEN new.activity ELSE 'idle' END
    WHERE rowid = new.rowid;
END;

-- A turn that starts in the commit that records it was never queued for anybody else. Those that run have an index already.
DROP INDEX turns_unsettled;
CREATE INDEX turns_queued ON turns (session_id, turn_index) WHERE state = 'queued';

-- One index in the place of three, with all columns in it that readers of many messages ask for.
DROP INDEX messages_visible;
DROP INDEX messages_by_role;
DROP INDEX messages_said;
CREATE INDEX messages_in_view ON messages (session_id, seq, role, turn, cut, archived) WHERE cut = 0 AND archived = 0;

-- The last pack that stays as it is, found without a look at those that commits have brought (2).
CREATE INDEX packs_settled ON packs (session_id, last_seq) WHERE codec <> 2;
