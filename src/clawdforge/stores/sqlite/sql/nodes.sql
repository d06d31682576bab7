-- Nodes that share a database. In words that SQLite and Postgres understand alike.

-- name: is_alive
SELECT 1 FROM members WHERE node = :node AND state <> 'dead'

-- name: nodes
SELECT {node} FROM members ORDER BY started_at, node

-- name: beat
UPDATE members SET beat = beat + 1, tells = coalesce(:tells, tells) WHERE node = :node AND state <> 'dead'

-- name: declare_dead
UPDATE members SET state = 'dead' WHERE node = :node AND beat = :beat AND state <> 'dead'

-- name: drain
UPDATE members SET state = :state WHERE node = :node AND state <> 'dead'

-- name: bury_folder
UPDATE members SET state = 'dead' WHERE folder = :folder AND state <> 'dead'

-- name: remove_node
DELETE FROM members WHERE node = :node

-- name: take_duty
INSERT INTO duties (name, node) VALUES (:name, :node)
ON CONFLICT (name) DO UPDATE SET node = excluded.node
WHERE NOT EXISTS (SELECT 1 FROM members WHERE members.node = duties.node AND members.state <> 'dead')

-- name: who_does
SELECT node FROM duties WHERE name = :name

-- name: wishes
SELECT {wish} FROM wishes WHERE node = :node ORDER BY wished_at, wish_id

-- name: forget_wishes
DELETE FROM wishes WHERE node = :node

-- name: has_wishes
SELECT 1 FROM wishes WHERE node = :node LIMIT 1

-- name: held_sessions
SELECT app_name, session_id FROM {sessions} WHERE holder = :node AND deleted_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM turns WHERE turns.session_id = sessions.session_id AND turns.state <> 'ended')
ORDER BY session_id

-- name: sessions_to_leave
SELECT app_name, session_id FROM {sessions} WHERE holder = :node AND deleted_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM turns WHERE turns.session_id = sessions.session_id AND turns.state IN ('running', 'waiting'))
ORDER BY session_id

-- name: held_counts
SELECT holder, count(*) FROM {sessions} WHERE holder IS NOT NULL AND deleted_at IS NULL GROUP BY holder

-- name: running_counts
SELECT holder, count(*) FROM {sessions} JOIN turns ON turns.session_id = sessions.session_id
WHERE turns.state IN ('running', 'waiting') AND holder IS NOT NULL AND deleted_at IS NULL
GROUP BY holder

-- name: node_with
SELECT node FROM members WHERE folder = :folder AND state = 'up' ORDER BY started_at DESC, node LIMIT 1

-- name: has_other_folders
SELECT 1 FROM sessions WHERE folder <> :folder
UNION ALL SELECT 1 FROM members WHERE state <> 'dead' AND folder <> :folder LIMIT 1

-- name: folder_of
SELECT folder FROM members WHERE node = :node

-- name: sessions_to_run
SELECT DISTINCT sessions.app_name, sessions.session_id FROM {sessions}
JOIN turns ON turns.session_id = sessions.session_id AND turns.state = 'queued'
WHERE sessions.deleted_at IS NULL AND sessions.closed_at IS NULL
  AND NOT EXISTS (
    SELECT 1 FROM turns AS other
    WHERE other.session_id = sessions.session_id AND other.state IN ('running', 'waiting'))
  AND NOT EXISTS (
    SELECT 1 FROM members WHERE members.node = holder AND members.node <> :node AND members.state <> 'dead')
  AND (holder = :node OR NOT EXISTS (
    SELECT 1 FROM members WHERE members.folder = sessions.folder AND members.node <> :node AND members.state = 'up'))
  AND NOT EXISTS (
    SELECT 1 FROM pauses WHERE pauses.app_name IN ('', sessions.app_name) AND pauses.agent IN ('', sessions.agent))
ORDER BY sessions.app_name, sessions.session_id

-- name: login_code
SELECT {code} FROM login_codes WHERE hash = :hash

-- name: login_codes_of
SELECT hash FROM login_codes WHERE token_id = :token ORDER BY ends_at, hash

-- name: remove_login_code
DELETE FROM login_codes WHERE hash = :hash

-- name: forget_login_codes
DELETE FROM login_codes WHERE ends_at <= :before
