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

-- name: lost_reservations
-- Held by turns that have ended, or that are not there. What one-shot runs hold is settled by the next start.
SELECT DISTINCT reservations.app_name, holder_id, reservations.turn_index
FROM reservations LEFT JOIN turns
    ON turns.session_id = reservations.holder_id AND turns.turn_index = reservations.turn_index
WHERE reservations.turn_index > 0 AND (turns.state IS NULL OR turns.state = 'ended')
ORDER BY reservations.app_name, holder_id, reservations.turn_index

-- name: miscounted_purses
SELECT purses.app_name, purses.budget_id, purses.starts_at, coalesce(sum(tokens), 0), coalesce(sum(cost), 0)
FROM purses LEFT JOIN reservations
    ON reservations.app_name = purses.app_name AND reservations.budget_id = purses.budget_id
   AND reservations.starts_at = purses.starts_at
GROUP BY purses.app_name, purses.budget_id, purses.starts_at
HAVING reserved_tokens <> coalesce(sum(tokens), 0) OR reserved_cost <> coalesce(sum(cost), 0)
