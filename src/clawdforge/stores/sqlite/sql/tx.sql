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

-- name: archive_messages
UPDATE messages SET archived = 1 WHERE session_id = {mine} AND cut = 0 AND archived = 0

-- name: remove_file
DELETE FROM files WHERE file_token = :file AND app_name = :app

-- name: remove_persona
DELETE FROM personas WHERE app_name = :app AND name = :name

-- name: first_message_after_turn
SELECT min(seq) FROM messages
WHERE session_id = {mine} AND cut = 0 AND archived = 0 AND turn > 0 AND turn <> :through AND seq > coalesce(
    (SELECT max(seq) FROM messages WHERE session_id = {mine} AND cut = 0 AND archived = 0 AND turn = :through), 0)

-- name: copy_turns
INSERT INTO turns ({turn_plain})
SELECT {turn_copied} FROM turns
WHERE session_id = {mine} AND state = 'ended' AND cut = 0 AND turn_index IN (
    SELECT turn FROM messages
    WHERE session_id = {mine} AND cut = 0 AND archived = 0 AND turn > 0 AND seq < :before)
  AND EXISTS (SELECT 1 FROM sessions WHERE session_id = :target AND app_name = :app AND deleted_at IS NULL)

-- name: copy_messages
INSERT INTO messages (id, {message_plain})
SELECT :last_id + row_number() OVER (ORDER BY seq), {message_copied} FROM messages
WHERE session_id = {mine} AND cut = 0 AND archived = 0 AND seq < :before
  AND EXISTS (SELECT 1 FROM sessions WHERE session_id = :target AND app_name = :app AND deleted_at IS NULL)

-- name: after_copy
UPDATE sessions SET
    updated_at = max(updated_at, :at),
    last_turn = max(last_turn, coalesce((SELECT max(turn_index) FROM turns WHERE session_id = :target), 0)),
    turn_count = (SELECT count(*) FROM turns WHERE session_id = :target AND started_at IS NOT NULL)
WHERE session_id = :target AND app_name = :app AND deleted_at IS NULL

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
