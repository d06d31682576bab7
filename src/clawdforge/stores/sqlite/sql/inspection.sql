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

-- name: bytes_counted
SELECT {session_forms} FROM session_bytes WHERE session_id = :session

-- name: bytes_real
SELECT (SELECT coalesce(sum(octet_length(data)), 0) FROM events WHERE session_id = :session)
    + (SELECT coalesce(sum(octet_length(data)), 0) FROM packs WHERE session_id = :session),
    (SELECT coalesce(sum(octet_length(content) + octet_length(thinking) + octet_length(tool_calls)
        + octet_length(plan)), 0) FROM messages WHERE session_id = :session)

-- name: count_bytes
INSERT INTO session_bytes (session_id, app_name, {session_forms}) VALUES (:session, :app, {session_values})
ON CONFLICT (session_id) DO UPDATE SET app_name = excluded.app_name, {session_excluded}

-- name: forget_bytes
DELETE FROM session_bytes WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.session_id = session_bytes.session_id)

-- name: apps_counted
SELECT app_name, {app_forms} FROM app_bytes ORDER BY app_name

-- name: apps_real
SELECT names.app_name,
    coalesce(sum(events), 0), coalesce(sum(messages), 0),
    (SELECT coalesce(sum(size), 0) FROM files WHERE files.app_name = names.app_name),
    (SELECT coalesce(sum(octet_length(prompt) + octet_length(coalesce(error, ''))), 0) FROM runs
     WHERE runs.app_name = names.app_name),
    coalesce(sum(homes), 0), coalesce(sum(home_copies), 0), coalesce(sum(snapshots), 0), coalesce(sum(workspaces), 0)
FROM (SELECT app_name FROM app_bytes UNION SELECT app_name FROM session_bytes UNION SELECT app_name FROM files
      UNION SELECT app_name FROM runs) AS names
LEFT JOIN session_bytes ON session_bytes.app_name = names.app_name
GROUP BY names.app_name ORDER BY names.app_name

-- name: count_app
INSERT OR REPLACE INTO app_bytes (app_name, {app_forms}) VALUES (:app, {app_values})
