-- What the doctor compares: a session's log, its messages, and what the session says of both.

-- name: sessions
SELECT app_name, session_id FROM sessions WHERE deleted_at IS NULL ORDER BY session_id

-- name: counted
SELECT message_count, last_message, turn_count, last_turn FROM sessions WHERE session_id = :session

-- name: count
SELECT coalesce(sum({visible}), 0), coalesce(max(seq), 0)
FROM messages WHERE session_id = :session

-- name: set_counted
-- A number that was given away once is not given to another message, even if the log does not tell of it.
UPDATE sessions SET message_count = :messages, last_message = max(last_message, :last_message),
    turn_count = :turns, last_turn = :last_turn
WHERE session_id = :session
