-- Nodes that share a database. In words that SQLite and Postgres understand alike.

-- name: is_alive
SELECT 1 FROM nodes WHERE node = :node AND state <> 'dead'

-- name: nodes
SELECT {node} FROM nodes ORDER BY started_at, node

-- name: beat
UPDATE nodes SET beat = beat + 1 WHERE node = :node AND state <> 'dead'

-- name: declare_dead
UPDATE nodes SET state = 'dead' WHERE node = :node AND beat = :beat AND state <> 'dead'

-- name: bury_folder
UPDATE nodes SET state = 'dead' WHERE folder = :folder AND state <> 'dead'

-- name: change_node
UPDATE nodes SET state = :state WHERE node = :node AND state <> 'dead'

-- name: remove_node
DELETE FROM nodes WHERE node = :node

-- name: take_duty
INSERT INTO duties (name, node) VALUES (:name, :node)
ON CONFLICT (name) DO UPDATE SET node = excluded.node
WHERE NOT EXISTS (SELECT 1 FROM nodes WHERE nodes.node = duties.node AND nodes.state <> 'dead')

-- name: who_does
SELECT node FROM duties WHERE name = :name

-- name: wishes
SELECT {wish} FROM wishes WHERE node = :node ORDER BY wished_at, wish_id

-- name: forget_wishes
DELETE FROM wishes WHERE node = :node

-- name: has_wishes
SELECT 1 FROM wishes WHERE node = :node LIMIT 1

-- name: held_sessions
SELECT app_name, session_id FROM sessions WHERE holder = :node AND deleted_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM turns WHERE turns.session_id = sessions.session_id AND turns.state <> 'ended')
ORDER BY session_id

-- name: held_counts
SELECT holder, count(*) FROM sessions WHERE holder IS NOT NULL AND deleted_at IS NULL GROUP BY holder
