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
INSERT INTO login_rounds (holder, round) VALUES (:holder, 1)
ON CONFLICT (holder) DO UPDATE SET round = login_rounds.round + 1

-- name: count_open_sessions
SELECT count(*) FROM sessions
WHERE retention = 'ttl' AND closed_at IS NULL AND deleted_at IS NULL

-- name: session_counts
SELECT app_name, count(*) FROM sessions WHERE deleted_at IS NULL GROUP BY app_name

-- name: open_session_counts
SELECT app_name, count(*), sum(CASE retention WHEN 'ttl' THEN 1 ELSE 0 END) FROM sessions
WHERE closed_at IS NULL AND deleted_at IS NULL GROUP BY app_name

-- name: turns_of_apps
SELECT sessions.app_name, count(*) FROM sessions
JOIN turns ON turns.session_id = sessions.session_id
WHERE sessions.activity IN ('queued', 'running', 'waiting')
    AND sessions.deleted_at IS NULL AND turns.state <> 'ended'
GROUP BY sessions.app_name

-- name: active_sessions
SELECT sessions.app_name, turns.session_id FROM turns
JOIN sessions ON sessions.session_id = turns.session_id
WHERE turns.state IN ('running', 'waiting') AND sessions.deleted_at IS NULL

-- name: cut_off_sessions
SELECT app_name, session_id FROM turns JOIN sessions USING (session_id) JOIN session_heads USING (session_id)
WHERE turns.state IN ('running', 'waiting') AND deleted_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM members WHERE members.node = session_heads.holder AND members.state <> 'dead')

-- name: waiting_sessions
SELECT sessions.app_name, turns.session_id FROM turns
JOIN sessions ON sessions.session_id = turns.session_id
WHERE turns.state <> 'ended' AND sessions.deleted_at IS NULL AND sessions.closed_at IS NULL
GROUP BY turns.session_id, sessions.app_name
HAVING count(*) FILTER (WHERE turns.state <> 'queued') = 0
ORDER BY min(turns.queued_at), turns.session_id

-- name: idle_sessions
SELECT app_name, session_id FROM sessions
WHERE retention = 'ttl' AND closed_at IS NULL AND deleted_at IS NULL
  AND coalesce(last_turn_at, created_at) < :before
  AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.session_id = sessions.session_id AND turns.state <> 'ended')
ORDER BY coalesce(last_turn_at, created_at) LIMIT :limit

-- name: closed_sessions
SELECT app_name, session_id FROM sessions
WHERE retention = 'ttl' AND closed_at IS NOT NULL AND deleted_at IS NULL AND closed_at < :before
ORDER BY closed_at LIMIT :limit

-- name: deleted_sessions
SELECT app_name, session_id FROM sessions
WHERE deleted_at IS NOT NULL AND deleted_at <= :now ORDER BY deleted_at LIMIT :limit

-- name: unfinished_sessions
SELECT app_name, session_id FROM sessions
WHERE cut_from + archived_to > 0 AND deleted_at IS NULL LIMIT :limit

-- name: unpacked_sessions
SELECT app_name, session_id, head <= coalesce(
    (SELECT last_seq FROM packs WHERE packs.session_id = sessions.session_id AND codec <> 2
     ORDER BY last_seq DESC LIMIT 1), 0)
FROM {sessions} WHERE session_id > :after AND deleted_at IS NULL ORDER BY session_id LIMIT :limit

-- name: unindexed_apps
SELECT app_name FROM message_ranges WHERE false

-- name: unmeasured_sessions
SELECT sessions.app_name, sessions.session_id FROM session_bytes
JOIN sessions ON sessions.session_id = session_bytes.session_id
WHERE session_bytes.session_id > :after AND session_bytes.homes = 0
  AND sessions.last_turn > 0 AND sessions.deleted_at IS NULL
ORDER BY session_bytes.session_id LIMIT :limit

-- name: unknown_sessions
SELECT value FROM unnest(:ids::text[]) AS asked (value)
WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.session_id = asked.value)

-- name: last_workspace
SELECT cwd FROM sessions AS mine WHERE session_id = :session AND own_cwd = 1 AND NOT EXISTS (
    SELECT 1 FROM sessions
    WHERE own_cwd = 1 AND sessions.cwd = mine.cwd AND sessions.session_id <> mine.session_id)

-- name: works_in
SELECT 1 FROM sessions WHERE own_cwd = 1 AND cwd = :cwd AND session_id <> :session
  AND deleted_at IS NULL LIMIT 1

-- name: unpublished_sessions
SELECT sessions.app_name, sessions.session_id FROM sessions
LEFT JOIN publications ON publications.session_id = sessions.session_id
WHERE sessions.home_at = :folder AND sessions.deleted_at IS NULL AND sessions.closed_at IS NULL
  AND coalesce(publications.turn_index, 0) < sessions.last_turn AND sessions.session_id > :after
ORDER BY sessions.session_id LIMIT :limit

-- name: sessions_in
SELECT app_name, session_id FROM sessions
WHERE closed_at IS NULL AND deleted_at IS NULL AND cwd = ANY (:line::text[])
UNION SELECT app_name, session_id FROM sessions
WHERE closed_at IS NULL AND deleted_at IS NULL AND cwd > :first AND cwd < :last
UNION SELECT app_name, session_id FROM sessions
WHERE closed_at IS NULL AND deleted_at IS NULL AND workspace_identity = ANY (:identities::text[])

-- name: is_taken
SELECT EXISTS (
    SELECT 1 FROM sessions
    WHERE closed_at IS NULL AND deleted_at IS NULL AND cwd = ANY (:line::text[]) AND app_name < :app
) OR EXISTS (
    SELECT 1 FROM sessions
    WHERE closed_at IS NULL AND deleted_at IS NULL AND cwd = ANY (:line::text[]) AND app_name > :app
) OR EXISTS (
    SELECT 1 FROM sessions
    WHERE closed_at IS NULL AND deleted_at IS NULL AND cwd > :first AND cwd < :last AND app_name <> :app
) OR EXISTS (
    SELECT 1 FROM sessions
    WHERE closed_at IS NULL AND deleted_at IS NULL AND app_name <> :app
      AND workspace_identity = ANY (:identities::text[]))

-- name: named_folders
SELECT cwd FROM sessions
WHERE closed_at IS NULL AND deleted_at IS NULL AND cwd < :first
UNION SELECT cwd FROM sessions
WHERE closed_at IS NULL AND deleted_at IS NULL AND cwd >= :last

-- name: place
SELECT identity FROM place

-- name: move_to
INSERT INTO place ("only", identity) VALUES (1, :place) ON CONFLICT ("only") DO UPDATE SET identity = excluded.identity

-- name: forget_identities
UPDATE sessions SET workspace_identity = NULL, identities = '{{}}' WHERE workspace_identity IS NOT NULL

-- name: turn_counts
SELECT state, count(*) FROM turns WHERE state <> 'ended' GROUP BY state

-- name: old_files
SELECT {file} FROM files
WHERE created_at < :before AND NOT EXISTS (
    SELECT 1 FROM turn_files JOIN sessions ON sessions.session_id = turn_files.session_id
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
INSERT INTO audit_base ("only", number, hash)
SELECT 1, number, hash FROM session_events WHERE number = :number
ON CONFLICT ("only") DO UPDATE SET number = excluded.number, hash = excluded.hash

-- name: remove_audit
DELETE FROM session_events WHERE number <= :number AND number <= (SELECT number FROM audit_base)

-- name: old_runs
SELECT runs.place, {run} FROM runs WHERE runs.created_at < :before AND runs.place > :after ORDER BY runs.place LIMIT :limit

-- name: remove_old_runs
DELETE FROM runs WHERE place IN (
    SELECT place FROM runs WHERE created_at < :before AND place <= :through ORDER BY place LIMIT :limit)

-- name: usage
-- A sum of whole numbers cannot overflow here; it stops at 2^53 - 1, as the sums of a session do.
SELECT names.app_name, count(session_id), coalesce(sum(turn_count), 0)::bigint,
       least(coalesce(sum(input_tokens), 0), 9007199254740991)::bigint,
       least(coalesce(sum(output_tokens), 0), 9007199254740991)::bigint,
       least(coalesce(sum(total_input_tokens), 0), 9007199254740991)::bigint,
       least(coalesce(sum(total_output_tokens), 0), 9007199254740991)::bigint, sum(cost_usd)
FROM (SELECT app_name FROM apps UNION SELECT app_name FROM sessions) AS names
LEFT JOIN sessions ON sessions.app_name = names.app_name AND sessions.deleted_at IS NULL
GROUP BY names.app_name ORDER BY names.app_name

-- name: remove_runs
-- In the order in which they came, which is that of the table: no index is needed, and only so many are looked at.
DELETE FROM runs WHERE created_at < :before AND place IN (SELECT place FROM runs ORDER BY place LIMIT :limit)

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
SELECT total, session_id, {session_forms} FROM session_bytes
WHERE app_name = :app AND (total, session_id) < (:total, :session)
ORDER BY total DESC, session_id DESC LIMIT :limit

-- name: apps_with_old_changes
SELECT app_name FROM change_counts WHERE (
    SELECT at FROM app_changes WHERE app_changes.app_name = change_counts.app_name ORDER BY number LIMIT 1) < :before
ORDER BY app_name

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
