-- What one app can read. Every statement carries the app; {mine} is the session's id if it is the app's.

-- name: app
SELECT {app} FROM apps WHERE app_name = :app

-- name: pauses
SELECT {pause} FROM pauses WHERE app_name = '' OR app_name = :app ORDER BY pauses.app_name, pauses.agent

-- name: budgets
SELECT {budget} FROM budgets WHERE app_name = :app ORDER BY by_operator DESC, scope, scope_id, period

-- name: budgets_for
SELECT {budget} FROM budgets WHERE app_name = :app AND (
    scope = 'app' OR scope = 'token' AND scope_id = :token
    OR scope = 'session' AND scope_id IN (SELECT value FROM json_each(:sessions)))
ORDER BY by_operator DESC, scope, scope_id, period

-- name: budget
SELECT {budget} FROM budgets WHERE budget_id = :budget AND app_name = :app

-- name: purse
SELECT {purse} FROM purses WHERE app_name = :app AND budget_id = :budget AND starts_at = :starts

-- name: reservations
SELECT {reservation} FROM reservations
WHERE app_name = :app AND holder_id = :holder AND turn_index = :turn ORDER BY budget_id

-- name: session
SELECT {session} FROM sessions WHERE session_id = :session AND app_name = :app AND deleted_at IS NULL

-- name: count_app_sessions
SELECT count(*) FROM sessions WHERE app_name = :app AND closed_at IS NULL AND deleted_at IS NULL

-- name: count_ttl_sessions
SELECT count(*) FROM sessions INDEXED BY sessions_capped
WHERE app_name = :app AND retention = 'ttl' AND closed_at IS NULL AND deleted_at IS NULL

-- name: turn
SELECT {turn} FROM turns WHERE session_id = {mine} AND turn_index = :turn

-- name: turn_outline
SELECT {turn_outline} FROM turns WHERE session_id = {mine} AND turn_index = :turn

-- name: turns
SELECT {turn} FROM turns WHERE session_id = {mine} AND turn_index > :after ORDER BY turn_index LIMIT :limit

-- name: turn_nodes
SELECT turn_index, parent, {turn_cut}, state, outcome, substr({prompt}, 1, :chars), queued_at FROM turns
WHERE session_id = {mine} AND turn_index > :after ORDER BY turn_index LIMIT :limit

-- name: failed_turns
SELECT said, {turn} FROM (
    SELECT (
        SELECT max(seq) FROM messages INDEXED BY messages_in_view
        WHERE session_id = {mine} AND {visible} AND turn > 0 AND turn = turns.turn_index) AS said, turns.*
    FROM turns
    WHERE session_id = {mine} AND turn_index > :after AND state = 'ended' AND started_at IS NOT NULL
      AND outcome IN ('failed', 'timed_out', 'interrupted')) AS turns
WHERE said IS NOT NULL ORDER BY turn_index

-- name: models
SELECT DISTINCT model FROM ({latest_models}) AS latest WHERE model > '' ORDER BY model

-- name: seq_at
SELECT seq FROM messages INDEXED BY messages_in_view
WHERE session_id = {mine} AND {visible} AND seq > {archived_to} ORDER BY seq LIMIT 1 OFFSET :skip

-- name: forks_after
SELECT forked_after, session_id, title FROM sessions INDEXED BY sessions_of_source
WHERE app_name = :app AND deleted_at IS NULL AND forked_from IS NOT NULL AND forked_from = {mine}
  AND forked_after > :after AND forked_after <= :last
ORDER BY forked_after, session_id LIMIT :limit

-- name: active_turn
SELECT {turn} FROM turns WHERE session_id = {mine} AND state IN ('running', 'waiting')

-- name: queued_turns
SELECT {turn} FROM turns INDEXED BY turns_queued
WHERE session_id = {mine} AND state = 'queued' ORDER BY turn_index LIMIT :limit

-- name: next_queued
SELECT {turn} FROM turns INDEXED BY turns_queued
WHERE session_id = {mine} AND state = 'queued'
ORDER BY NOT (automatic OR if_busy IN (SELECT value FROM json_each(:first))), turn_index LIMIT 1

-- name: queue
SELECT turn_index, automatic OR if_busy IN (SELECT value FROM json_each(:first)) FROM turns INDEXED BY turns_queued
WHERE session_id = {mine} AND state = 'queued' ORDER BY turn_index

-- name: count_queued
SELECT count(*) FROM turns INDEXED BY turns_queued
WHERE session_id = {mine} AND state = 'queued'
  AND (:policies IS NULL OR if_busy IN (SELECT value FROM json_each(:policies)))

-- name: turn_by_key
SELECT {turn} FROM turns WHERE session_id = {mine} AND key = :key AND key IS NOT NULL

-- name: turns_in_flight
SELECT coalesce(sum({unsettled_turns}), 0) FROM sessions INDEXED BY sessions_at_work
WHERE sessions.app_name = :app AND sessions.activity IN ('queued', 'running', 'waiting')
    AND sessions.deleted_at IS NULL

-- name: last_ended_seq
SELECT last_seq FROM turns
WHERE session_id = {mine} AND state = 'ended' AND ended_at < :before AND last_seq IS NOT NULL
ORDER BY turn_index DESC LIMIT 1

-- name: messages_visible
SELECT {message} FROM messages
WHERE session_id = {mine} AND {visible} AND seq > {after} ORDER BY seq LIMIT :limit

-- name: messages_all
SELECT {message} FROM messages WHERE session_id = {mine} AND {present} AND seq > :after ORDER BY seq LIMIT :limit

-- name: messages_cut
SELECT {message} FROM messages
WHERE session_id = {mine} AND (cut = 1 OR {hidden}) AND seq > :after ORDER BY seq LIMIT :limit

-- name: messages_before_visible
SELECT {message} FROM messages
WHERE session_id = {mine} AND {visible} AND seq > {archived_to} AND seq < {before} ORDER BY seq DESC LIMIT :limit

-- name: messages_before_all
SELECT {message} FROM messages WHERE session_id = {mine} AND {present} AND seq < {before} ORDER BY seq DESC LIMIT :limit

-- name: has_before_visible
SELECT EXISTS (
    SELECT 1 FROM messages WHERE session_id = {mine} AND {visible} AND seq > {archived_to} AND seq < {before})

-- name: has_before_all
SELECT EXISTS (SELECT 1 FROM messages WHERE session_id = {mine} AND {present} AND seq < {before})

-- name: has_after_visible
SELECT EXISTS (SELECT 1 FROM messages WHERE session_id = {mine} AND {visible} AND seq > {after})

-- name: has_after_all
SELECT EXISTS (SELECT 1 FROM messages WHERE session_id = {mine} AND {present} AND seq > :after)

-- name: last_messages_visible
SELECT {message} FROM messages
WHERE session_id = {mine} AND {visible} ORDER BY seq DESC LIMIT :limit

-- name: last_messages_all
SELECT {message} FROM messages WHERE session_id = {mine} AND {present} ORDER BY seq DESC LIMIT :limit

-- name: last_messages_cut
SELECT {message} FROM messages
WHERE session_id = {mine} AND (cut = 1 OR {hidden}) ORDER BY seq DESC LIMIT :limit

-- name: last_message
SELECT {message} FROM messages INDEXED BY messages_in_view
WHERE session_id = {mine} AND seq < :before AND role = :role AND {visible}
ORDER BY seq DESC LIMIT 1

-- name: pending_prompt
SELECT CASE WHEN pending = 1 THEN seq END FROM messages INDEXED BY messages_in_view
WHERE session_id = {mine} AND role = 'user' AND turn IS NOT NULL AND {visible}
ORDER BY seq DESC LIMIT 1

-- name: has_finished_changes
SELECT cut_from + archived_to = 0 FROM sessions
WHERE session_id = :session AND app_name = :app AND deleted_at IS NULL

-- name: is_hidden
SELECT :seq BETWEEN cut_from AND cut_to FROM sessions
WHERE session_id = :session AND app_name = :app AND deleted_at IS NULL

-- name: first_of_last
SELECT min(seq) FROM (
    SELECT seq FROM messages INDEXED BY messages_in_view
    WHERE session_id = {mine} AND role = :role AND {visible} ORDER BY seq DESC LIMIT :count)

-- name: message
SELECT {message} FROM messages WHERE session_id = {mine} AND {visible} AND seq = :seq

-- name: count_visible
SELECT count(*) FROM messages INDEXED BY messages_in_view WHERE session_id = {mine} AND {visible}

-- name: seqs_from
SELECT json_group_array(seq) FROM messages INDEXED BY messages_in_view
WHERE session_id = {mine} AND {visible} AND seq >= :first

-- name: turns_said_from
SELECT json_group_array(turn) FROM messages INDEXED BY messages_in_view
WHERE session_id = {mine} AND {visible} AND turn > 0 AND seq >= :first

-- name: first_message_after_turn
SELECT seq FROM messages INDEXED BY messages_in_view
WHERE session_id = {mine} AND {visible} AND turn > 0 AND turn <> :through AND seq > coalesce((
    SELECT seq FROM messages INDEXED BY messages_in_view
    WHERE session_id = {mine} AND {visible} AND turn > 0 AND turn = :through ORDER BY seq DESC LIMIT 1), 0)
ORDER BY seq LIMIT 1

-- name: last_spoken_turn
SELECT turn FROM messages INDEXED BY messages_in_view
WHERE session_id = {mine} AND seq < :before AND {visible} AND turn > 0
ORDER BY seq DESC LIMIT 1

-- name: permission
SELECT {permission} FROM permissions WHERE permission_id = :permission AND session_id = {mine}

-- name: permissions
SELECT {permission} FROM permissions
WHERE session_id = {mine} AND (:state IS NULL OR state = :state) ORDER BY requested_at, permission_id

-- name: permissions_pending
SELECT {permission} FROM permissions
WHERE session_id = {mine} AND state = 'pending' ORDER BY requested_at, permission_id

-- name: count_pending
SELECT count(*) FROM permissions INDEXED BY permissions_pending WHERE session_id = {mine} AND state = 'pending'

-- name: pending_of_app
-- Only a turn that runs has open requests, so that few are walked. They are sorted by their keys alone, then read.
SELECT sessions.title, sessions.agent, {permission}
FROM (
    SELECT permissions.permission_id AS found, sessions.session_id AS owner
    FROM turns INDEXED BY turns_one_active
    CROSS JOIN sessions ON sessions.session_id = turns.session_id
    CROSS JOIN permissions INDEXED BY permissions_pending ON permissions.session_id = turns.session_id
    WHERE turns.state IN ('running', 'waiting') AND sessions.app_name = :app AND sessions.deleted_at IS NULL
      AND permissions.state = 'pending' AND (requested_at, permission_id) > (:requested_at, :permission_id)
    ORDER BY permissions.requested_at, permissions.permission_id LIMIT :limit)
CROSS JOIN permissions ON permissions.permission_id = found
CROSS JOIN sessions ON sessions.session_id = owner
ORDER BY permissions.requested_at, permissions.permission_id

-- name: is_granted
SELECT 1 FROM permissions
WHERE session_id = {mine} AND tool = :tool AND kind IS :kind
  AND decision = 'allow_always' AND state = 'decided' LIMIT 1

-- name: file
SELECT {file} FROM files WHERE file_token = :file AND app_name = :app

-- name: file_beginning
-- The sign before app_name keeps the index of the app's files out, which would be read whole.
SELECT {file} FROM files WHERE file_token >= :mark AND file_token < :beyond AND +app_name = :app LIMIT 1

-- name: persona
SELECT {persona} FROM personas WHERE app_name = :app AND name = :name

-- name: secrets
SELECT name, value FROM app_secrets WHERE app_name = :app

-- name: personas
SELECT {persona} FROM personas WHERE app_name = :app ORDER BY name

-- name: ids_of_app
SELECT number << 40, (number + 1 << 40) - 1 FROM message_ranges WHERE app_name = :app

-- name: ids_of_session
SELECT (SELECT id FROM messages WHERE session_id = {mine} ORDER BY seq LIMIT 1),
       (SELECT id FROM messages WHERE session_id = {mine} ORDER BY seq DESC LIMIT 1)

-- name: search
SELECT messages.session_id, sessions.title, messages.seq, messages.turn, messages.role, messages.ts,
       snippet(messages_fts, 0, '«', '»', '…', 24), messages.id
FROM messages_fts
CROSS JOIN messages ON messages.id = messages_fts.rowid
CROSS JOIN sessions ON sessions.session_id = messages.session_id
WHERE messages_fts MATCH :match AND messages_fts.rowid BETWEEN :first AND :last
  AND (:session IS NULL OR messages.session_id = :session)
  AND messages.cut = 0 AND messages.archived = 0
  AND messages.seq > sessions.archived_to AND messages.seq NOT BETWEEN sessions.cut_from AND sessions.cut_to
  AND sessions.app_name = :app AND sessions.deleted_at IS NULL
ORDER BY messages_fts.rowid DESC LIMIT :limit

-- name: stored_bytes
SELECT {app_forms} FROM app_bytes WHERE app_name = :app

-- name: change_bounds
SELECT coalesce((SELECT forgotten FROM change_counts WHERE app_name = :app), 0), {last_change}

-- name: changes
SELECT number, session_id, permission_id FROM app_changes
WHERE app_name = :app AND number > :after ORDER BY number LIMIT :limit

-- name: links
SELECT {link} FROM share_links WHERE session_id = {mine} AND app_name = :app ORDER BY created_at, share_id

-- name: usage_sums
SELECT * FROM (
    SELECT {usage_names}, {usage_sums} FROM usage_days
    WHERE app_name = :app AND day BETWEEN :first AND :last GROUP BY 1, 2, 3, 4)
WHERE {usage_after} ORDER BY 1, 2, 3, 4 LIMIT :limit

-- name: turn_before
SELECT turn_index, last_seq, context FROM turns
WHERE session_id = {mine} AND last_seq < :seq AND first_seq IS NOT NULL ORDER BY last_seq DESC LIMIT 1

-- name: endpoints
SELECT {endpoint} FROM webhook_endpoints WHERE app_name = :app ORDER BY created_at, endpoint_id

-- name: endpoint
SELECT {endpoint} FROM webhook_endpoints WHERE app_name = :app AND endpoint_id = :endpoint

-- name: delivery
SELECT {delivery} FROM webhook_deliveries WHERE delivery_id = :delivery AND app_name = :app

-- name: deliveries
SELECT {delivery} FROM webhook_deliveries
WHERE app_name = :app AND endpoint_id = :endpoint AND (created_at, delivery_id) < (:at, :last)
ORDER BY created_at DESC, delivery_id DESC LIMIT :limit

-- name: deliveries_in_state
SELECT {delivery} FROM webhook_deliveries
WHERE app_name = :app AND endpoint_id = :endpoint AND state = :state AND (created_at, delivery_id) < (:at, :last)
ORDER BY created_at DESC, delivery_id DESC LIMIT :limit

-- name: due_deliveries
SELECT {delivery} FROM webhook_deliveries
WHERE app_name = :app AND endpoint_id = :endpoint AND state = 'waiting' AND (next_at <= :now OR next_at > :far)
ORDER BY next_at, delivery_id LIMIT :limit

-- name: count_waiting
SELECT count(*) FROM webhook_deliveries WHERE app_name = :app AND state = 'waiting'

-- name: schedule
SELECT {schedule} FROM schedules WHERE app_name = :app AND schedule_id = :schedule

-- name: schedules
SELECT {schedule} FROM schedules WHERE app_name = :app AND (created_at, schedule_id) > (:at, :last)
ORDER BY created_at, schedule_id LIMIT :limit

-- name: count_schedules
SELECT count(*) FROM schedules WHERE app_name = :app

-- name: occurrence
SELECT {occurrence} FROM schedule_occurrences
WHERE app_name = :app AND schedule_id = :schedule AND occurrence_id = :occurrence

-- name: occurrences
SELECT {occurrence} FROM schedule_occurrences
WHERE app_name = :app AND schedule_id = :schedule AND (planned_at, occurrence_id) < (:at, :last)
ORDER BY planned_at DESC, occurrence_id DESC LIMIT :limit
