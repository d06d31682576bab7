-- What one app can change. Every statement carries the app; {mine} is the session's id if it is the app's.

-- name: state
SELECT head, fence FROM sessions WHERE session_id = :session AND app_name = :app AND deleted_at IS NULL

-- name: session_at_work
-- What whoever begins or ends a turn asks for besides: the turn that runs, how many wait, what was said last, and
-- the newest prompt, if it is pending.
SELECT {session}, (
    SELECT turn_index FROM turns INDEXED BY turns_one_active
    WHERE turns.session_id = sessions.session_id AND turns.state IN ('running', 'waiting')
), (
    SELECT count(*) FROM turns INDEXED BY turns_queued
    WHERE turns.session_id = sessions.session_id AND turns.state = 'queued'
), coalesce((
    SELECT turn FROM messages INDEXED BY messages_in_view
    WHERE messages.session_id = sessions.session_id AND {visible} AND turn > 0 ORDER BY seq DESC LIMIT 1
), 0), (
    SELECT CASE WHEN pending = 1 THEN seq END FROM messages INDEXED BY messages_in_view
    WHERE messages.session_id = sessions.session_id AND role = 'user' AND turn IS NOT NULL AND {visible}
    ORDER BY seq DESC LIMIT 1
) FROM sessions WHERE session_id = :session AND app_name = :app AND deleted_at IS NULL

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

-- name: put_budget
INSERT INTO budgets ({budget_plain}) SELECT {budget_marks} WHERE :app_name = :app
ON CONFLICT (app_name, scope, scope_id, period, by_operator) DO UPDATE SET
    max_tokens = excluded.max_tokens, max_cost = excluded.max_cost, share_tokens = excluded.share_tokens,
    share_cost = excluded.share_cost, warn_at = excluded.warn_at, action = excluded.action

-- name: remove_budget
DELETE FROM budgets WHERE budget_id = :budget AND app_name = :app

-- name: remove_purses_of_budget
DELETE FROM purses WHERE app_name = :app AND budget_id = :budget

-- name: remove_reservations_of_budget
DELETE FROM reservations WHERE app_name = :app AND budget_id = :budget

-- name: remove_old_purses
DELETE FROM purses WHERE app_name = :app AND budget_id = :budget AND starts_at < :before AND NOT EXISTS (
    SELECT 1 FROM reservations WHERE reservations.app_name = purses.app_name
      AND reservations.budget_id = purses.budget_id AND reservations.starts_at = purses.starts_at)

-- name: remove_reservations
DELETE FROM reservations WHERE app_name = :app AND holder_id = :holder AND turn_index = :turn

-- name: budgets_of_session
SELECT budget_id FROM budgets WHERE app_name = :app AND scope = 'session' AND scope_id = :session

-- name: purge_state
SELECT deleted_at FROM sessions WHERE session_id = :session AND app_name = :app

-- name: purge_events
DELETE FROM events WHERE session_id = {dead} AND seq IN (
    SELECT seq FROM events WHERE session_id = {dead} ORDER BY seq LIMIT :limit)

-- name: purge_packs
DELETE FROM packs WHERE session_id = {dead} AND last_seq IN (
    SELECT last_seq FROM packs WHERE session_id = {dead} ORDER BY last_seq LIMIT :limit)

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

-- name: add_event_bytes
UPDATE session_bytes SET events = events + :bytes WHERE session_id = :session AND app_name = :app

-- name: put_change
INSERT INTO app_changes (session_id, permission_id, app_name, number, at)
VALUES (:session, :permission, :app, 1 + {last_change}, :at)
ON CONFLICT (session_id, permission_id) DO UPDATE SET number = excluded.number, at = excluded.at WHERE app_name = :app

-- name: first_changes
SELECT number, at FROM app_changes WHERE app_name = :app ORDER BY number LIMIT :limit

-- name: forget_changes
DELETE FROM app_changes WHERE app_name = :app AND number <= :through

-- name: move_forgotten
INSERT INTO change_counts (app_name, last, forgotten) VALUES (:app, :through, :through)
ON CONFLICT DO UPDATE SET last = max(last, :through), forgotten = max(forgotten, :through) WHERE app_name = :app

-- name: remove_link
DELETE FROM share_links WHERE share_id = :share AND session_id = {mine} AND app_name = :app

-- name: forget_usage
DELETE FROM usage_days WHERE (app_name, day, agent, model) IN (
    SELECT app_name, day, agent, model FROM usage_days WHERE app_name = :app AND day < :before ORDER BY day LIMIT :limit)

-- name: add_usage
INSERT INTO usage_days VALUES (
    :app, :day, :agent, :model, 1, :input_tokens, :output_tokens, :cached_tokens, min(9e15, :cost_usd),
    :estimated_input, :estimated_output, min(9e15, :estimated_cost))
ON CONFLICT (app_name, day, agent, model) DO UPDATE SET
    turns = turns + 1,
    input_tokens = min(9007199254740991, input_tokens + excluded.input_tokens),
    output_tokens = min(9007199254740991, output_tokens + excluded.output_tokens),
    cached_tokens = min(9007199254740991, cached_tokens + excluded.cached_tokens),
    cost_usd = coalesce(min(9e15, cost_usd + excluded.cost_usd), cost_usd, excluded.cost_usd),
    estimated_input = min(9007199254740991, estimated_input + excluded.estimated_input),
    estimated_output = min(9007199254740991, estimated_output + excluded.estimated_output),
    estimated_cost = coalesce(min(9e15, estimated_cost + excluded.estimated_cost), estimated_cost, excluded.estimated_cost)
WHERE app_name = :app

-- name: remove_deliveries_to
DELETE FROM webhook_deliveries WHERE delivery_id IN (
    SELECT delivery_id FROM webhook_deliveries WHERE app_name = :app AND endpoint_id = :endpoint LIMIT :limit)

-- name: remove_endpoint
DELETE FROM webhook_endpoints WHERE app_name = :app AND endpoint_id = :endpoint

-- name: remove_occurrences_of
DELETE FROM schedule_occurrences WHERE app_name = :app AND schedule_id = :schedule

-- name: remove_schedule
DELETE FROM schedules WHERE app_name = :app AND schedule_id = :schedule

-- name: trim_occurrences
DELETE FROM schedule_occurrences
WHERE app_name = :app AND schedule_id = :schedule AND (planned_at, occurrence_id) <= (
    SELECT planned_at, occurrence_id FROM schedule_occurrences WHERE app_name = :app AND schedule_id = :schedule
    ORDER BY planned_at DESC, occurrence_id DESC LIMIT 1 OFFSET :keep)

-- name: keep_prompt
INSERT OR REPLACE INTO long_prompts (session_id, turn_index, prompt) VALUES ({mine}, :turn, :prompt)
