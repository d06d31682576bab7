-- What the doctor compares: a session's log, its messages, and what the session says of both.

-- name: sessions
SELECT app_name, session_id FROM sessions WHERE deleted_at IS NULL ORDER BY session_id

-- name: span_of_log
SELECT count(*), min(seq), max(seq) FROM events WHERE session_id = :session AND seq > 0

-- name: count_brought
SELECT count(*), min(seq) FROM events WHERE session_id = :session AND seq <= 0

-- name: turns_of
SELECT turn FROM events WHERE session_id = :session AND type = :type

-- name: own_events
SELECT seq, data FROM events WHERE session_id = :session AND by_agent = 0 AND seq > :after
ORDER BY seq LIMIT :limit

-- name: brought
SELECT seq, type, data FROM events WHERE session_id = :session AND seq < :below ORDER BY seq DESC LIMIT :limit

-- name: event
SELECT data FROM events WHERE session_id = :session AND seq = :seq

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
