-- What the doctor compares: a session's log, its messages, and what the session says of both.

-- name: sessions
SELECT app_name, session_id FROM sessions WHERE deleted_at IS NULL ORDER BY session_id

-- name: span_of_log
SELECT count(*), min(seq), max(seq) FROM events WHERE session_id = :session

-- name: turns_of
SELECT turn FROM events WHERE session_id = :session AND type = :type

-- name: data_of
SELECT data FROM events WHERE session_id = :session AND type = :type

-- name: counted
SELECT message_count, last_message FROM sessions WHERE session_id = :session

-- name: count
SELECT coalesce(sum({visible}), 0), coalesce(max(seq), 0)
FROM messages WHERE session_id = :session

-- name: set_counted
UPDATE sessions SET message_count = :visible, last_message = max(last_message, :last)
WHERE session_id = :session
