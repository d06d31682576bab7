-- Files that every node can have.

-- name: publication
SELECT {publication} FROM publications WHERE session_id = {mine}

-- name: find_blobs
SELECT digest, place FROM blobs
WHERE app_name = :app AND state IN ('stored', 'used') AND digest IN (SELECT value FROM json_each(:digests))
ORDER BY state

-- name: data
SELECT data FROM blob_data WHERE place = :place AND app_name = :app

-- name: keep_data
INSERT INTO blob_data (place, app_name, data) VALUES (:place, :app, :data)

-- name: mark_stored
UPDATE blobs SET state = 'stored'
WHERE app_name = :app AND state = 'pending' AND place IN (SELECT value FROM json_each(:places))

-- name: count_stored
SELECT count(*) FROM blobs
WHERE app_name = :app AND state IN ('stored', 'used') AND place IN (SELECT value FROM json_each(:places))

-- name: mark_used
UPDATE blobs SET state = 'used'
WHERE app_name = :app AND state = 'stored' AND place IN (SELECT value FROM json_each(:places))

-- name: drop_uses
DELETE FROM blob_uses
WHERE owner = :owner AND app_name = :app AND place NOT IN (SELECT value FROM json_each(:places))
RETURNING place

-- name: mark_unused
UPDATE blobs SET state = 'stored', touched_at = :at
WHERE app_name = :app AND state = 'used' AND place IN (SELECT value FROM json_each(:places))
  AND NOT EXISTS (SELECT 1 FROM blob_uses WHERE blob_uses.place = blobs.place)

-- name: add_uses
INSERT INTO blob_uses (place, owner, app_name) SELECT value, :owner, :app FROM json_each(:places) WHERE 1
ON CONFLICT DO NOTHING

-- name: unused
SELECT {blob} FROM blobs WHERE touched_at < :before AND state <> 'used' ORDER BY touched_at, place LIMIT :limit

-- name: doom
UPDATE blobs SET state = 'doomed' WHERE place IN (SELECT value FROM json_each(:places))

-- name: forget
DELETE FROM blobs WHERE state = 'doomed' AND place IN (SELECT value FROM json_each(:places))

-- name: drop_data
DELETE FROM blob_data WHERE app_name = :app AND place IN (SELECT value FROM json_each(:places))

-- name: purge_publication
DELETE FROM publications WHERE session_id = {dead}
