-- Events, wherever they lie: in rows of their own or in packs. Every statement carries the app.

-- name: rows
SELECT seq, turn, type, by_agent, data, compact FROM events
WHERE session_id = {mine} AND seq > :after AND seq <= :last
  AND (:turn IS NULL OR turn = :turn) AND (:by_agent IS NULL OR by_agent = :by_agent)
ORDER BY seq LIMIT :limit

-- name: next_pack
SELECT codec, first_seq, last_seq, data FROM packs
WHERE session_id = {mine} AND last_seq > :after ORDER BY last_seq LIMIT 1

-- name: lowest
SELECT min(seq) FROM events WHERE session_id = {mine}
UNION ALL SELECT * FROM (
    SELECT first_seq FROM packs WHERE session_id = {mine} ORDER BY last_seq LIMIT 1)

-- name: last_below
SELECT max(seq) FROM events WHERE session_id = {mine} AND seq < :below
UNION ALL SELECT max(last_seq) FROM packs WHERE session_id = {mine} AND last_seq < :below
UNION ALL SELECT :below - 1 FROM (
    SELECT first_seq FROM packs WHERE session_id = {mine} AND last_seq >= :below ORDER BY last_seq LIMIT 1)
WHERE first_seq < :below

-- name: packs
SELECT first_seq, last_seq FROM packs WHERE session_id = {mine} ORDER BY last_seq

-- name: count_doubles
SELECT count(*) FROM packs CROSS JOIN events
ON events.session_id = packs.session_id AND events.seq BETWEEN packs.first_seq AND packs.last_seq
WHERE packs.session_id = {mine}

-- name: last_pack
-- The last that stays as it is: what a commit has brought at once (2) is packed again.
SELECT codec, first_seq, last_seq, data, raw_bytes FROM packs INDEXED BY packs_settled
WHERE session_id = {mine} AND codec <> 2 ORDER BY last_seq DESC LIMIT 1

-- name: early_packs
SELECT codec, first_seq, last_seq, data, raw_bytes FROM packs
WHERE session_id = {mine} AND codec = 2 AND last_seq > :after AND last_seq <= :last ORDER BY last_seq LIMIT :limit

-- name: loose_rows
-- What is large stays where it is, and so does what somebody edited by hand.
SELECT seq, turn, type, by_agent, data, compact FROM events
WHERE session_id = {mine} AND seq > :after AND seq <= :last
  AND typeof(data) = 'blob' AND octet_length(data) <= :most AND typeof(turn) IN ('integer', 'null')
  AND typeof(type) = 'text' AND type NOT GLOB '*[^a-z_.]*'
  AND typeof(by_agent) = 'integer' AND typeof(compact) = 'integer'
ORDER BY seq LIMIT :limit

-- name: remove_rows
DELETE FROM events WHERE session_id = {mine} AND seq BETWEEN :first AND :last

-- name: remove_pack
DELETE FROM packs WHERE session_id = {mine} AND last_seq = :last

-- name: add_pack
INSERT INTO packs (session_id, first_seq, last_seq, codec, raw_bytes, data)
SELECT session_id, :first, :last, :codec, :raw_bytes, :data
FROM sessions WHERE session_id = :session AND app_name = :app AND deleted_at IS NULL
