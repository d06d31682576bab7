-- What one app can change. Every statement carries the app; {mine} is the session's id if it is the app's.

-- name: state
SELECT head, fence FROM sessions WHERE session_id = :session AND app_name = :app AND deleted_at IS NULL

-- name: move_head
UPDATE sessions SET head = :head, updated_at = max(updated_at, :at)
WHERE session_id = :session AND app_name = :app AND deleted_at IS NULL

-- name: claim
UPDATE sessions SET holder = :node, fence = fence + 1
WHERE session_id = :session AND app_name = :app AND deleted_at IS NULL RETURNING fence

-- name: next_seq
SELECT last_message + 1 FROM sessions
WHERE session_id = :session AND app_name = :app AND deleted_at IS NULL

-- name: add_message_range
INSERT INTO message_ranges (app_name) VALUES (:app) ON CONFLICT DO NOTHING

-- name: last_message_id
SELECT coalesce(
    (SELECT max(id) FROM messages WHERE id BETWEEN number << 40 AND (number + 1 << 40) - 1), number << 40)
FROM message_ranges WHERE app_name = :app

-- name: remove_file
DELETE FROM files WHERE file_token = :file AND app_name = :app

-- name: remove_persona
DELETE FROM personas WHERE app_name = :app AND name = :name

-- name: purge_state
SELECT deleted_at FROM sessions WHERE session_id = :session AND app_name = :app

-- name: purge_events
DELETE FROM events WHERE session_id = {dead} AND seq IN (
    SELECT seq FROM events WHERE session_id = {dead} ORDER BY seq LIMIT :limit)

-- name: purge_messages
DELETE FROM messages WHERE session_id = {dead} AND seq IN (
    SELECT seq FROM messages WHERE session_id = {dead} ORDER BY seq LIMIT :limit)

-- name: purge_turns
DELETE FROM turns WHERE session_id = {dead} AND turn_index IN (
    SELECT turn_index FROM turns WHERE session_id = {dead} ORDER BY turn_index LIMIT :limit)

-- name: purge_permissions
DELETE FROM permissions WHERE permission_id IN (
    SELECT permission_id FROM permissions WHERE session_id = {dead} LIMIT :limit)

-- name: purge_session
DELETE FROM sessions WHERE session_id = {dead}
