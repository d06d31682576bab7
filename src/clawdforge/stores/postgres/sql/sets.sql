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
WHERE session_id = {mine} AND cut = 0 AND archived = 0 AND seq > :after AND seq < :before ORDER BY seq LIMIT :limit

-- name: slice_named
SELECT seq, octet_length(content) + octet_length(thinking) + octet_length(tool_calls) FROM messages
WHERE session_id = {mine} AND seq = ANY (:seqs::bigint[]) ORDER BY seq

-- name: cut_messages
UPDATE messages SET cut = 1
WHERE session_id = {mine} AND cut = 0 AND archived = 0 AND seq > :after AND seq <= :last

-- name: archive_messages
UPDATE messages SET archived = 1
WHERE session_id = {mine} AND cut = 0 AND archived = 0 AND seq > :after AND seq <= :last

-- name: restore_messages
UPDATE messages SET cut = 0 WHERE session_id = {mine} AND cut = 1 AND seq = ANY (:seqs::bigint[])

-- name: mark_turns
UPDATE turns SET cut = :cut
WHERE session_id = {mine} AND cut <> :cut AND turn_index = ANY (:turns::bigint[])

-- name: unmarked_turns
SELECT turn_index FROM json_array_elements({cut_turns}::json) AS span (value)
JOIN turns ON turns.turn_index BETWEEN (value ->> 0)::bigint AND (value ->> 1)::bigint
WHERE turns.session_id = {mine} AND turns.cut = 0 LIMIT :limit

-- name: copy_turns
INSERT INTO turns ({turn_plain})
SELECT {turn_copied} FROM turns
WHERE session_id = {mine} AND state = 'ended' AND NOT {turn_cut} AND turn_index IN (
    SELECT turn FROM messages
    WHERE session_id = {mine} AND {visible} AND turn > 0 AND seq > :after AND seq <= :last)
  AND EXISTS (SELECT 1 FROM sessions WHERE session_id = :target AND app_name = :app)
ON CONFLICT (session_id, turn_index) DO NOTHING
RETURNING turn_index, started_at IS NOT NULL

-- name: copy_messages
INSERT INTO messages (id, {message_plain})
SELECT :last_id + row_number() OVER (ORDER BY seq), {message_copied} FROM messages
WHERE session_id = {mine} AND {visible} AND seq > :after AND seq <= :last
  AND EXISTS (SELECT 1 FROM sessions WHERE session_id = :target AND app_name = :app)

-- name: after_copy
UPDATE sessions SET updated_at = greatest(updated_at, :at), last_turn = greatest(last_turn, :last_turn),
    turn_count = turn_count + :started
WHERE session_id = :target AND app_name = :app

-- name: bring_messages
SELECT {below} - row_number() OVER (ORDER BY seq), {message_plain} FROM messages
WHERE session_id = :target AND seq > :after AND seq <= :last
  AND EXISTS (SELECT 1 FROM sessions WHERE session_id = :target AND app_name = :app)
ORDER BY seq

-- name: bring_turns
SELECT {below} - row_number() OVER (ORDER BY turn_index), {turn_plain} FROM turns
WHERE session_id = :target AND turn_index = ANY (:turns::bigint[])
  AND EXISTS (SELECT 1 FROM sessions WHERE session_id = :target AND app_name = :app)
ORDER BY turn_index

-- name: reveal_session
UPDATE sessions SET deleted_at = NULL
WHERE session_id = :session AND app_name = :app AND deleted_at IS NOT NULL
