-- The database of graphs, made by its owner, who is the server. LangGraph's own tables as its saver expects them
-- (version 9 of its migrations), and beside them which claim may use which threads, and where turns have ended.
CREATE TABLE IF NOT EXISTS checkpoint_migrations (
    v INTEGER PRIMARY KEY
);
CREATE TABLE IF NOT EXISTS checkpoints (
    thread_id TEXT NOT NULL,
    checkpoint_ns TEXT NOT NULL DEFAULT '',
    checkpoint_id TEXT NOT NULL,
    parent_checkpoint_id TEXT,
    type TEXT,
    checkpoint JSONB NOT NULL,
    metadata JSONB NOT NULL DEFAULT '{}',
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
);
CREATE TABLE IF NOT EXISTS checkpoint_blobs (
    thread_id TEXT NOT NULL,
    checkpoint_ns TEXT NOT NULL DEFAULT '',
    channel TEXT NOT NULL,
    version TEXT NOT NULL,
    type TEXT NOT NULL,
    blob BYTEA,
    PRIMARY KEY (thread_id, checkpoint_ns, channel, version)
);
CREATE TABLE IF NOT EXISTS checkpoint_writes (
    thread_id TEXT NOT NULL,
    checkpoint_ns TEXT NOT NULL DEFAULT '',
    checkpoint_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    idx INTEGER NOT NULL,
    channel TEXT NOT NULL,
    type TEXT,
    blob BYTEA NOT NULL,
    task_path TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
);
INSERT INTO checkpoint_migrations SELECT generate_series(0, 9) ON CONFLICT DO NOTHING;

-- Of a session only the latest claim has a pass; what a graph shows of it is the secret.
CREATE TABLE IF NOT EXISTS passes (
    session_id TEXT PRIMARY KEY,
    claim BIGINT NOT NULL,
    secret_hash BYTEA NOT NULL UNIQUE
);
CREATE TABLE IF NOT EXISTS marks (
    session_id TEXT NOT NULL,
    turn_index BIGINT NOT NULL,
    thread_id TEXT NOT NULL,
    checkpoint_id TEXT NOT NULL,
    PRIMARY KEY (session_id, turn_index)
);
CREATE INDEX IF NOT EXISTS checkpoints_of_session ON checkpoints (split_part(thread_id, ':', 1));
CREATE INDEX IF NOT EXISTS blobs_of_session ON checkpoint_blobs (split_part(thread_id, ':', 1));
CREATE INDEX IF NOT EXISTS writes_of_session ON checkpoint_writes (split_part(thread_id, ':', 1));

-- With the rights of the owner: nobody else reads `passes`.
CREATE OR REPLACE FUNCTION own_threads() RETURNS TEXT LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT session_id || ':' || claim || ':' FROM public.passes
    WHERE secret_hash = sha256(convert_to(current_setting('clawdforge.pass', true), 'UTF8'))
$$;
DO $$
DECLARE
    kept TEXT;
BEGIN
    FOREACH kept IN ARRAY ARRAY['checkpoints', 'checkpoint_blobs', 'checkpoint_writes'] LOOP
        IF NOT EXISTS (SELECT 1 FROM pg_policies WHERE schemaname = 'public' AND tablename = kept) THEN
            EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', kept);
            EXECUTE format('CREATE POLICY own_threads ON %I USING (starts_with(thread_id, (SELECT own_threads())))', kept);
        END IF;
    END LOOP;
END
$$;
