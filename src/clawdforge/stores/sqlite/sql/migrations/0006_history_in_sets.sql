-- A long history changes at once for those who read it, and row by row, in slices, for the file.
-- Messages from `cut_from` to `cut_to` count as cut, with the turns of `cut_turns` (pairs of first and last),
-- and those up to `archived_to` as archived. When their own columns say so too, these are 0 again.
ALTER TABLE sessions ADD COLUMN cut_from INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN cut_to INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN cut_turns TEXT NOT NULL DEFAULT '[]';
ALTER TABLE sessions ADD COLUMN archived_to INTEGER NOT NULL DEFAULT 0;
CREATE INDEX sessions_unsettled ON sessions (session_id) WHERE cut_from + archived_to > 0;

-- With all columns in it that are asked for, the turns of many messages are read without their rows.
DROP INDEX messages_said;
CREATE INDEX messages_said ON messages (session_id, seq, turn, cut, archived)
    WHERE cut = 0 AND archived = 0 AND turn > 0;

-- The full-text index is brought up to date later: `stale` is 1 while a hidden message is in it or a visible one is not.
ALTER TABLE messages ADD COLUMN stale INTEGER NOT NULL DEFAULT 0;
CREATE INDEX messages_stale ON messages (id) WHERE stale = 1;

DROP TRIGGER messages_added;
DROP TRIGGER messages_removed;
DROP TRIGGER messages_changed;
CREATE TRIGGER messages_added AFTER INSERT ON messages BEGIN
    UPDATE sessions SET
        last_message = max(last_message, new.seq),
        message_count = message_count + (new.cut = 0 AND new.archived = 0)
    WHERE session_id = new.session_id;
    INSERT INTO messages_fts (rowid, content)
    SELECT new.id, substr(new.content, 1, 100000) WHERE new.cut = 0 AND new.archived = 0 AND new.stale = 0;
END;
CREATE TRIGGER messages_removed AFTER DELETE ON messages BEGIN
    UPDATE sessions SET message_count = message_count - 1
    WHERE session_id = old.session_id AND old.cut = 0 AND old.archived = 0
      AND old.seq > archived_to AND old.seq NOT BETWEEN cut_from AND cut_to;
    INSERT INTO messages_fts (messages_fts, rowid, content)
    SELECT 'delete', old.id, substr(old.content, 1, 100000) WHERE (old.cut = 0 AND old.archived = 0) <> old.stale;
END;
CREATE TRIGGER messages_shown AFTER UPDATE OF cut, archived ON messages
WHEN (old.cut = 0 AND old.archived = 0) <> (new.cut = 0 AND new.archived = 0) BEGIN
    UPDATE sessions SET message_count = message_count
        + (new.cut = 0 AND new.archived = 0) - (old.cut = 0 AND old.archived = 0)
    WHERE session_id = new.session_id AND new.seq > archived_to AND new.seq NOT BETWEEN cut_from AND cut_to;
    UPDATE messages SET stale = 1 - old.stale WHERE id = new.id;
END;
CREATE TRIGGER messages_reworded AFTER UPDATE OF content ON messages WHEN old.content <> new.content BEGIN
    INSERT INTO messages_fts (messages_fts, rowid, content)
    SELECT 'delete', old.id, substr(old.content, 1, 100000) WHERE (old.cut = 0 AND old.archived = 0) <> old.stale;
    INSERT INTO messages_fts (rowid, content)
    SELECT new.id, substr(new.content, 1, 100000) WHERE (old.cut = 0 AND old.archived = 0) <> old.stale;
END;
