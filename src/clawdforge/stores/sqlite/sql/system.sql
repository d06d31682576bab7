-- What spans apps: credentials, and where work waits.

-- name: apps
SELECT {app} FROM apps ORDER BY app_name

-- name: app
SELECT {app} FROM apps WHERE app_name = :app

-- name: secret_names
SELECT app_name, name FROM app_secrets ORDER BY app_name, name

-- name: add_secret
INSERT INTO app_secrets (app_name, name, value) VALUES (:app, :name, :value)

-- name: remove_secret
DELETE FROM app_secrets WHERE app_name = :app AND name = :name

-- name: pauses
SELECT {pause} FROM pauses ORDER BY app_name, agent

-- name: budget_apps
SELECT DISTINCT app_name FROM budgets WHERE app_name > :after ORDER BY app_name LIMIT :limit

-- name: app_of_budget
SELECT app_name FROM budgets WHERE budget_id = :budget

-- name: lost_runs
SELECT DISTINCT app_name, holder_id FROM reservations WHERE turn_index = 0 AND NOT EXISTS (
    SELECT 1 FROM members WHERE members.node = reservations.node AND members.state <> 'dead')

-- name: token_by_hash
SELECT {token} FROM tokens WHERE hash = :hash

-- name: tokens
SELECT {token} FROM tokens ORDER BY app_name, created_at, token_id

-- name: tokens_of_app
SELECT {token} FROM tokens WHERE app_name = :app ORDER BY created_at, token_id

-- name: link_by_hash
SELECT {link} FROM share_links WHERE hash = :hash

-- name: login_round
SELECT round FROM login_rounds WHERE holder = :holder

-- name: end_logins
INSERT INTO login_rounds (holder, round) VALUES (:holder, 1) ON CONFLICT DO UPDATE SET round = round + 1

-- name: count_open_sessions
SELECT count(*) FROM sessions INDEXED BY sessions_capped
WHERE retention = 'ttl' AND closed_at IS NULL AND deleted_at IS NULL

-- name: session_counts
SELECT app_name, sum(count) FROM (
    SELECT app_name, count(*) AS count FROM sessions INDEXED BY sessions_open
    WHERE deleted_at IS NULL AND closed_at IS NULL GROUP BY app_name
    UNION ALL
    SELECT app_name, count(*) AS count FROM sessions INDEXED BY sessions_ended
    WHERE deleted_at IS NULL AND closed_at IS NOT NULL GROUP BY app_name)
GROUP BY app_name

-- name: open_session_counts
SELECT app_name, count(*), sum(CASE retention WHEN 'ttl' THEN 1 ELSE 0 END) FROM sessions INDEXED BY sessions_open
WHERE closed_at IS NULL AND deleted_at IS NULL GROUP BY app_name

-- name: turns_of_apps
SELECT app_name, sum(turns) FROM (
    SELECT app_name, {unsettled_turns} AS turns FROM sessions INDEXED BY sessions_at_work
    WHERE activity IN ('queued', 'running', 'waiting') AND deleted_at IS NULL)
WHERE turns > 0 GROUP BY app_name

-- name: active_sessions
SELECT sessions.app_name, turns.session_id FROM turns INDEXED BY turns_one_active
CROSS JOIN sessions ON sessions.session_id = turns.session_id
WHERE turns.state IN ('running', 'waiting') AND sessions.deleted_at IS NULL

-- name: cut_off_sessions
SELECT sessions.app_name, turns.session_id FROM turns INDEXED BY turns_one_active
CROSS JOIN sessions ON sessions.session_id = turns.session_id
WHERE turns.state IN ('running', 'waiting') AND sessions.deleted_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM members WHERE members.node = sessions.holder AND members.state <> 'dead')

-- name: waiting_sessions
SELECT sessions.app_name, turns.session_id FROM turns INDEXED BY turns_queued
CROSS JOIN sessions ON sessions.session_id = turns.session_id
WHERE turns.state = 'queued' AND sessions.deleted_at IS NULL AND sessions.closed_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM turns AS active INDEXED BY turns_one_active
    WHERE active.session_id = sessions.session_id AND active.state IN ('running', 'waiting'))
GROUP BY turns.session_id
ORDER BY min(turns.queued_at), turns.session_id

-- name: idle_sessions
SELECT app_name, session_id FROM sessions INDEXED BY sessions_idle
WHERE retention = 'ttl' AND closed_at IS NULL AND deleted_at IS NULL
  AND idle_since < :before AND {unsettled_turns} = 0
ORDER BY idle_since LIMIT :limit

-- name: closed_sessions
SELECT app_name, session_id FROM sessions INDEXED BY sessions_closed
WHERE retention = 'ttl' AND closed_at IS NOT NULL AND deleted_at IS NULL AND closed_at < :before
ORDER BY closed_at LIMIT :limit

-- name: deleted_sessions
SELECT app_name, session_id FROM sessions INDEXED BY sessions_deleted
WHERE deleted_at IS NOT NULL AND deleted_at <= :now ORDER BY deleted_at LIMIT :limit

-- name: unfinished_sessions
SELECT app_name, session_id FROM sessions INDEXED BY sessions_unsettled
WHERE cut_from + archived_to > 0 AND deleted_at IS NULL LIMIT :limit

-- name: unpacked_sessions
SELECT app_name, session_id, head <= coalesce(
    (SELECT last_seq FROM packs INDEXED BY packs_settled WHERE packs.session_id = sessions.session_id
     AND codec <> 2 ORDER BY last_seq DESC LIMIT 1), 0)
FROM sessions WHERE session_id > :after AND deleted_at IS NULL ORDER BY session_id LIMIT :limit

-- name: unindexed_apps
SELECT app_name FROM message_ranges WHERE EXISTS (
    SELECT 1 FROM messages INDEXED BY messages_stale
    WHERE stale = 1 AND id BETWEEN number << 40 AND (number + 1 << 40) - 1)

-- name: unmeasured_sessions
SELECT sessions.app_name, sessions.session_id FROM session_bytes
CROSS JOIN sessions ON sessions.session_id = session_bytes.session_id
WHERE session_bytes.session_id > :after AND session_bytes.homes = 0
  AND sessions.last_turn > 0 AND sessions.deleted_at IS NULL
ORDER BY session_bytes.session_id LIMIT :limit

-- name: unknown_sessions
SELECT value FROM json_each(:ids)
WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.session_id = json_each.value)

-- name: last_workspace
SELECT cwd FROM sessions AS mine WHERE session_id = :session AND own_cwd = 1 AND NOT EXISTS (
    SELECT 1 FROM sessions INDEXED BY sessions_of_workspace
    WHERE own_cwd = 1 AND sessions.cwd = mine.cwd AND sessions.session_id <> mine.session_id)

-- name: works_in
SELECT 1 FROM sessions INDEXED BY sessions_of_workspace WHERE own_cwd = 1 AND cwd = :cwd AND session_id <> :session
  AND deleted_at IS NULL LIMIT 1

-- name: unpublished_sessions
SELECT sessions.app_name, sessions.session_id FROM sessions
LEFT JOIN publications ON publications.session_id = sessions.session_id
WHERE sessions.home_at = :folder AND sessions.deleted_at IS NULL AND sessions.closed_at IS NULL
  AND coalesce(publications.turn_index, 0) < sessions.last_turn AND sessions.session_id > :after
ORDER BY sessions.session_id LIMIT :limit

-- name: sessions_in
SELECT app_name, session_id FROM sessions INDEXED BY sessions_by_folder
WHERE closed_at IS NULL AND deleted_at IS NULL AND cwd IN (SELECT value FROM json_each(:line))
UNION SELECT app_name, session_id FROM sessions INDEXED BY sessions_by_folder
WHERE closed_at IS NULL AND deleted_at IS NULL AND cwd > :first AND cwd < :last
UNION SELECT app_name, session_id FROM sessions INDEXED BY sessions_by_identity
WHERE closed_at IS NULL AND deleted_at IS NULL AND workspace_identity IN (SELECT value FROM json_each(:identities))

-- name: is_taken
SELECT EXISTS (
    SELECT 1 FROM sessions INDEXED BY sessions_by_folder
    WHERE closed_at IS NULL AND deleted_at IS NULL AND cwd IN (SELECT value FROM json_each(:line)) AND app_name < :app
) OR EXISTS (
    SELECT 1 FROM sessions INDEXED BY sessions_by_folder
    WHERE closed_at IS NULL AND deleted_at IS NULL AND cwd IN (SELECT value FROM json_each(:line)) AND app_name > :app
) OR EXISTS (
    SELECT 1 FROM sessions INDEXED BY sessions_by_folder
    WHERE closed_at IS NULL AND deleted_at IS NULL AND cwd > :first AND cwd < :last AND app_name <> :app
) OR EXISTS (
    SELECT 1 FROM sessions INDEXED BY sessions_by_identity
    WHERE closed_at IS NULL AND deleted_at IS NULL AND app_name <> :app
      AND workspace_identity IN (SELECT value FROM json_each(:identities)))

-- name: named_folders
SELECT cwd FROM sessions INDEXED BY sessions_by_folder
WHERE closed_at IS NULL AND deleted_at IS NULL AND cwd < :first
UNION SELECT cwd FROM sessions INDEXED BY sessions_by_folder
WHERE closed_at IS NULL AND deleted_at IS NULL AND cwd >= :last

-- name: place
SELECT identity FROM place

-- name: move_to
INSERT INTO place (only, identity) VALUES (1, :place) ON CONFLICT (only) DO UPDATE SET identity = excluded.identity

-- name: forget_identities
UPDATE sessions SET workspace_identity = NULL, identities = '{{}}' WHERE workspace_identity IS NOT NULL

-- name: turn_counts
SELECT state, count(*) FROM turns INDEXED BY turns_one_active WHERE state IN ('running', 'waiting') GROUP BY state
UNION ALL
SELECT 'queued', count(*) FROM turns INDEXED BY turns_queued WHERE state = 'queued' GROUP BY 1

-- name: old_files
SELECT {file} FROM files INDEXED BY files_by_age
WHERE created_at < :before AND NOT EXISTS (
    SELECT 1 FROM turn_files CROSS JOIN sessions ON sessions.session_id = turn_files.session_id
    WHERE turn_files.file_token = files.file_token AND sessions.app_name = files.app_name
      AND sessions.closed_at IS NULL AND sessions.deleted_at IS NULL)
ORDER BY created_at, file_token LIMIT :limit

-- name: audit
SELECT {audit} FROM session_events WHERE number > :after ORDER BY number LIMIT :limit

-- name: audit_of_app
SELECT {audit} FROM session_events WHERE app_name = :app AND number > :after ORDER BY number LIMIT :limit

-- name: audit_head
SELECT number, hash FROM session_events ORDER BY number DESC LIMIT 1

-- name: audit_base
SELECT number, hash FROM audit_base

-- name: move_audit_base
INSERT OR REPLACE INTO audit_base (only, number, hash)
SELECT 1, number, hash FROM session_events WHERE number = :number

-- name: remove_audit
DELETE FROM session_events WHERE number <= :number AND number <= (SELECT number FROM audit_base)

-- name: old_runs
SELECT runs.rowid, {run} FROM runs WHERE runs.created_at < :before AND runs.rowid > :after ORDER BY runs.rowid LIMIT :limit

-- name: remove_old_runs
DELETE FROM runs WHERE rowid IN (
    SELECT rowid FROM runs WHERE created_at < :before AND rowid <= :through ORDER BY rowid LIMIT :limit)

-- name: usage
-- total() cannot overflow, and is exact up to 2^53 - 1, where the sums of a session stop as well.
SELECT names.app_name, count(session_id), coalesce(sum(turn_count), 0),
       CAST(min(total(input_tokens), 9007199254740991) AS INTEGER),
       CAST(min(total(output_tokens), 9007199254740991) AS INTEGER),
       CAST(min(total(total_input_tokens), 9007199254740991) AS INTEGER),
       CAST(min(total(total_output_tokens), 9007199254740991) AS INTEGER), sum(cost_usd)
FROM (SELECT app_name FROM apps UNION SELECT app_name FROM sessions) AS names
LEFT JOIN sessions ON sessions.app_name = names.app_name AND sessions.deleted_at IS NULL
GROUP BY names.app_name ORDER BY names.app_name

-- name: remove_runs
-- In the order in which they came, which is that of the table: no index is needed, and only so many are looked at.
DELETE FROM runs WHERE created_at < :before AND rowid IN (SELECT rowid FROM runs ORDER BY rowid LIMIT :limit)

-- name: put_pause
INSERT INTO pauses (app_name, agent, reason, paused_at) VALUES (:app_name, :agent, :reason, :paused_at)
ON CONFLICT (app_name, agent) DO UPDATE SET reason = excluded.reason

-- name: remove_pause
DELETE FROM pauses WHERE app_name = :app AND agent = :agent

-- name: put_app
INSERT INTO apps (app_name, created_at, max_sessions, max_turns_in_flight, max_bytes, workspace_roots,
                  max_requests_per_sec, max_open_requests, max_readers, max_agents,
                  mcp_servers)
VALUES (:app_name, :created_at, :max_sessions, :max_turns_in_flight, :max_bytes, :workspace_roots,
        :max_requests_per_sec, :max_open_requests, :max_readers, :max_agents,
        :mcp_servers)
ON CONFLICT (app_name) DO UPDATE SET
    max_sessions = excluded.max_sessions,
    max_turns_in_flight = excluded.max_turns_in_flight,
    max_bytes = excluded.max_bytes,
    workspace_roots = excluded.workspace_roots,
    max_requests_per_sec = excluded.max_requests_per_sec,
    max_open_requests = excluded.max_open_requests,
    max_readers = excluded.max_readers,
    max_agents = excluded.max_agents,
    mcp_servers = excluded.mcp_servers

-- name: disk_of_apps
SELECT app_name, {app_forms} FROM app_bytes ORDER BY app_name

-- name: disk_of_sessions
SELECT total, session_id, {session_forms} FROM session_bytes INDEXED BY session_bytes_by_size
WHERE app_name = :app AND (total, session_id) < (:total, :session)
ORDER BY total DESC, session_id DESC LIMIT :limit

-- name: apps_with_old_changes
WITH RECURSIVE names (app) AS (
    SELECT min(app_name) FROM app_changes WHERE app_name > ''
    UNION ALL
    SELECT (SELECT min(app_name) FROM app_changes WHERE app_name > names.app) FROM names WHERE names.app IS NOT NULL)
SELECT app FROM names WHERE app IS NOT NULL AND (
    SELECT at FROM app_changes WHERE app_changes.app_name = names.app ORDER BY number LIMIT 1) < :before

-- name: apps_with_old_usage
WITH RECURSIVE names (app) AS (
    SELECT min(app_name) FROM usage_days
    UNION ALL
    SELECT (SELECT min(app_name) FROM usage_days WHERE app_name > names.app) FROM names WHERE names.app IS NOT NULL)
SELECT app FROM names
WHERE EXISTS (SELECT 1 FROM usage_days WHERE app_name = names.app AND day < :before) ORDER BY app

-- name: usage_sums
SELECT * FROM (
    SELECT {usage_names}, {usage_sums} FROM usage_days
    WHERE day BETWEEN :first AND :last GROUP BY 1, 2, 3, 4)
WHERE {usage_after} ORDER BY 1, 2, 3, 4 LIMIT :limit

-- name: waiting_deliveries
SELECT * FROM (
    SELECT app_name, endpoint_id,
        (SELECT min(next_at) FROM webhook_deliveries AS due
         WHERE due.app_name = told.app_name AND due.endpoint_id = told.endpoint_id AND due.state = 'waiting') AS first_at,
        (SELECT max(next_at) FROM webhook_deliveries AS due
         WHERE due.app_name = told.app_name AND due.endpoint_id = told.endpoint_id AND due.state = 'waiting') AS last_at
    FROM webhook_endpoints AS told) AS found
WHERE first_at IS NOT NULL ORDER BY first_at, app_name, endpoint_id

-- name: endpoints_off
SELECT app_name, endpoint_id FROM webhook_endpoints WHERE disabled = :why ORDER BY app_name, endpoint_id

-- name: remove_deliveries
DELETE FROM webhook_deliveries WHERE delivery_id IN (
    SELECT delivery_id FROM webhook_deliveries WHERE done_at < :before ORDER BY done_at LIMIT :limit)

-- name: due_schedules
SELECT app_name, schedule_id, next_at FROM schedules WHERE next_at <= :now AND NOT EXISTS (
    SELECT 1 FROM pauses WHERE pauses.agent = '' AND pauses.app_name IN ('', schedules.app_name))
ORDER BY next_at, app_name, schedule_id LIMIT :limit

-- name: first_schedule
SELECT next_at FROM schedules WHERE next_at IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM pauses WHERE pauses.agent = '' AND pauses.app_name IN ('', schedules.app_name))
ORDER BY next_at LIMIT 1

-- name: waiting_schedules
SELECT app_name, schedule_id, next_at FROM schedules
WHERE next_at IS NOT NULL AND (app_name, schedule_id) > (:last_app, :last)
ORDER BY app_name, schedule_id LIMIT :limit
