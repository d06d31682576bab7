-- Copies the thread $1, up to the checkpoint $2 if one is named, to the thread $3: all of it in one statement, which
-- sees one state of it. Checkpoints get new ids in the same order, which come before all that LangGraph gives: those
-- are made of the time, and the next ones may be made by a machine whose clock is behind.
WITH ids AS MATERIALIZED (
    SELECT id, '00000000-0000-6000-8000-' || lpad(to_hex(row_number() OVER (ORDER BY id)), 12, '0') AS fresh
    FROM (
        SELECT checkpoint_id AS id FROM checkpoints WHERE thread_id = $1
        UNION
        SELECT checkpoint_id FROM checkpoint_writes WHERE thread_id = $1
    ) AS known
    WHERE $2::text IS NULL OR id <= $2
), kept AS MATERIALIZED (
    SELECT checkpoints.*, fresh FROM checkpoints JOIN ids ON id = checkpoint_id WHERE thread_id = $1
), copied AS (
    INSERT INTO checkpoints
        (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
    SELECT
        $3, checkpoint_ns, kept.fresh, parents.fresh, type, jsonb_set(checkpoint, '{id}', to_jsonb(kept.fresh)),
        CASE WHEN metadata ? 'parents' THEN jsonb_set(metadata, '{parents}', (
            SELECT coalesce(jsonb_object_agg(key, coalesce(ids.fresh, value)), '{}')
            FROM jsonb_each_text(metadata -> 'parents') LEFT JOIN ids ON ids.id = value
        )) ELSE metadata END
    FROM kept LEFT JOIN ids AS parents ON parents.id = parent_checkpoint_id
    RETURNING 1
), versions AS (
    SELECT DISTINCT checkpoint_ns, key AS channel, value AS version
    FROM kept CROSS JOIN LATERAL jsonb_each_text(checkpoint -> 'channel_versions')
), blobs AS (
    INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
    SELECT $3, checkpoint_ns, channel, version, type, blob
    FROM checkpoint_blobs JOIN versions USING (checkpoint_ns, channel, version) WHERE thread_id = $1
), writes AS (
    INSERT INTO checkpoint_writes
        (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, blob, task_path)
    SELECT $3, checkpoint_ns, fresh, task_id, idx, channel, type, blob, task_path
    FROM checkpoint_writes JOIN ids ON id = checkpoint_id WHERE thread_id = $1
)
SELECT count(*) FROM copied
