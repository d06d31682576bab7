-- What a session is doing, in one word, and how its last turn ended: kept by the rules with every change of a turn.
ALTER TABLE sessions ADD COLUMN activity TEXT NOT NULL DEFAULT 'idle';
ALTER TABLE sessions ADD COLUMN last_outcome TEXT;

UPDATE sessions SET last_outcome = (
    SELECT outcome FROM turns WHERE turns.session_id = sessions.session_id AND turns.turn_index = (
        SELECT turn FROM messages INDEXED BY messages_said
        WHERE messages.session_id = sessions.session_id AND cut = 0 AND archived = 0 AND turn > 0
        ORDER BY seq DESC LIMIT 1));
UPDATE sessions SET activity = CASE
    WHEN last_outcome = 'interrupted' THEN 'interrupted'
    WHEN last_outcome IN ('failed', 'timed_out') THEN 'failed'
    ELSE 'idle' END;
UPDATE sessions SET activity = (
    SELECT CASE max(CASE state WHEN 'waiting' THEN 3 WHEN 'running' THEN 2 ELSE 1 END)
        WHEN 3 THEN 'waiting' WHEN 2 THEN 'running' ELSE 'queued' END
    FROM turns WHERE turns.session_id = sessions.session_id AND turns.state <> 'ended')
WHERE session_id IN (SELECT session_id FROM turns INDEXED BY turns_unsettled WHERE state <> 'ended');

-- A session moves to the top of its list with every event. While it works it is in a small index that does not
-- care, so that an event costs what it did before.
CREATE INDEX sessions_at_rest ON sessions (app_name, activity, updated_at, session_id)
    WHERE deleted_at IS NULL AND activity IN ('idle', 'interrupted', 'failed');
CREATE INDEX sessions_at_work ON sessions (app_name, activity, session_id)
    WHERE deleted_at IS NULL AND activity IN ('queued', 'running', 'waiting');

-- The turn that a turn was said after (0: none; null: it began before this was noted), and where a fork left its source.
ALTER TABLE turns ADD COLUMN parent INTEGER;
ALTER TABLE sessions ADD COLUMN forked_after INTEGER;
UPDATE sessions SET forked_after = (
    SELECT CAST(json_extract(CAST(data AS TEXT), '$.after_turn') AS INTEGER) FROM events
    WHERE events.session_id = sessions.session_id AND seq = 1 AND type = 'session.created')
WHERE forked_from IS NOT NULL;
CREATE INDEX sessions_of_source ON sessions (app_name, forked_from, forked_after, session_id)
    WHERE deleted_at IS NULL AND forked_from IS NOT NULL;
