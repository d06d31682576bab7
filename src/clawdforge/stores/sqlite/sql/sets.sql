-- Many messages of one app at once: marked, copied and indexed in slices that no other writer feels.
-- A slice ends at the seq `last`: as many rows as allowed, and no more text than allowed, but at least one row.

-- name: marks
SELECT cut_from, cut_to, cut_turns, archived_to, last_message FROM sessions
WHERE session_id = :session AND app_name = :app AND deleted_at IS NULL

-- name: set_marks
UPDATE sessions SET cut_from = :cut_from, cut_to = :cut_to, cut_turns = :cut_turns, archived_to = :archived_to,
    message_count = message_count + :shown
WHERE session_id = :session AND app_name = :app AND deleted_at IS NULL

-- name: slice_visible
SELECT seq, octet_length(content) + octet_length(thinking) + octet_length(tool_calls) FROM messages
WHERE session_id = {mine} AND {visible} AND seq > {after} AND seq < :before ORDER BY seq LIMIT :limit

-- name: slice_unmarked
SELECT seq, octet_length(content) + octet_length(thinking) + octet_length(tool_calls) FROM messages
INDEXED BY messages_in_view
WHERE session_id = {mine} AND cut = 0 AND archived = 0 AND seq > :after AND seq < :before ORDER BY seq LIMIT :limit

-- name: slice_named
SELECT seq, octet_length(content) + octet_length(thinking) + octet_length(tool_calls) FROM messages
WHERE session_id = {mine} AND seq IN (SELECT value FROM json_each(:seqs)) ORDER BY seq

-- name: cut_messages
UPDATE messages SET cut = 1
WHERE session_id = {mine} AND cut = 0 AND archived = 0 AND seq > :after AND seq <= :last

-- name: archive_messages
UPDATE messages SET archived = 1
WHERE session_id = {mine} AND cut = 0 AND archived = 0 AND seq > :after AND seq <= :last

-- name: restore_messages
UPDATE messages SET cut = 0 WHERE session_id = {mine} AND cut = 1 AND seq IN (SELECT value FROM json_each(:seqs))

-- name: mark_turns
UPDATE turns SET cut = :cut
WHERE session_id = {mine} AND cut <> :cut AND turn_index IN (SELECT value FROM json_each(:turns))

-- name: unmarked_turns
SELECT turn_index FROM json_each({cut_turns})
JOIN turns ON turns.turn_index BETWEEN value ->> 0 AND value ->> 1
WHERE turns.session_id = {mine} AND turns.cut = 0 LIMIT :limit

-- name: copy_turns
INSERT OR IGNORE INTO turns ({turn_plain})
SELECT {turn_copied} FROM turns
WHERE session_id = {mine} AND state = 'ended' AND NOT {turn_cut} AND turn_index IN (
    SELECT turn FROM messages INDEXED BY messages_in_view
    WHERE session_id = {mine} AND {visible} AND turn > 0 AND seq > :after AND seq <= :last)
  AND EXISTS (SELECT 1 FROM sessions WHERE session_id = :target AND app_name = :app)
RETURNING turn_index, started_at IS NOT NULL

-- name: copy_messages
INSERT INTO messages (id, {message_plain}, stale)
SELECT :last_id + row_number() OVER (ORDER BY seq), {message_copied}, 1 FROM messages
WHERE session_id = {mine} AND {visible} AND seq > :after AND seq <= :last
  AND EXISTS (SELECT 1 FROM sessions WHERE session_id = :target AND app_name = :app)

-- name: after_copy
UPDATE sessions SET updated_at = max(updated_at, :at), last_turn = max(last_turn, :last_turn),
    turn_count = turn_count + :started
WHERE session_id = :target AND app_name = :app

-- name: bring_messages
INSERT INTO events (session_id, seq, turn, type, by_agent, data, compact)
SELECT :target, number, turn, 'message.brought', 0, CAST(json_object(
    'seq', number, 'ts', {said_at}, 'turn', turn, 'type', 'message.brought', 'row', json_object({message_told})
) AS BLOB), 1
FROM (
    SELECT {below} - row_number() OVER (ORDER BY seq) AS number, {message_plain} FROM messages
    WHERE session_id = :target AND seq > :after AND seq <= :last
      AND EXISTS (SELECT 1 FROM sessions WHERE session_id = :target AND app_name = :app))

-- name: bring_turns
INSERT INTO events (session_id, seq, turn, type, by_agent, data, compact)
SELECT :target, number, turn_index, 'turn.brought', 0, CAST(json_object(
    'seq', number, 'ts', {queued_at}, 'turn', turn_index, 'type', 'turn.brought', 'row', json_object({turn_told})
) AS BLOB), 1
FROM (
    SELECT {below} - row_number() OVER (ORDER BY turn_index) AS number, {turn_whole} FROM turns
    WHERE session_id = :target AND turn_index IN (SELECT value FROM json_each(:turns))
      AND EXISTS (SELECT 1 FROM sessions WHERE session_id = :target AND app_name = :app))

-- name: reveal_session
UPDATE sessions SET deleted_at = NULL
WHERE session_id = :session AND app_name = :app AND deleted_at IS NOT NULL

-- name: stale_messages
SELECT id, cut = 0 AND archived = 0, min(octet_length(content), 100000)
FROM message_ranges CROSS JOIN messages INDEXED BY messages_stale
WHERE message_ranges.app_name = :app AND stale = 1 AND id BETWEEN number << 40 AND (number + 1 << 40) - 1
ORDER BY id LIMIT :limit

-- name: add_to_index
INSERT INTO messages_fts (rowid, content)
SELECT id, substr(content, 1, 100000) FROM messages
WHERE id = :id AND EXISTS (SELECT 1 FROM message_ranges WHERE app_name = :app AND id >> 40 = number)

-- name: remove_from_index
INSERT INTO messages_fts (messages_fts, rowid, content)
SELECT 'delete', id, substr(content, 1, 100000) FROM messages
WHERE id = :id AND EXISTS (SELECT 1 FROM message_ranges WHERE app_name = :app AND id >> 40 = number)

-- name: not_stale
UPDATE messages SET stale = 0
WHERE id = :id AND EXISTS (SELECT 1 FROM message_ranges WHERE app_name = :app AND id >> 40 = number)
