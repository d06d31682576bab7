-- What moves with every event of a session stands in a narrow row: none of its columns but the holder is in an index,
-- and half of a page is room for new versions, since one statement may write all the rows of a page. So it is written
-- without touching any index. A server of before this names columns of `sessions` that are gone: the database refuses
-- whatever it would write.
CREATE TABLE session_heads (
    session_id word PRIMARY KEY,
    head       bigint NOT NULL,
    holder     word,
    fence      bigint NOT NULL,
    written    bigint NOT NULL,
    moved_at   bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
INSERT INTO session_heads SELECT session_id, head, holder, fence, written, updated_at FROM sessions;
CREATE INDEX session_heads_held ON session_heads (holder) WHERE holder IS NOT NULL;
DROP INDEX sessions_held;
ALTER TABLE sessions DROP COLUMN head, DROP COLUMN holder, DROP COLUMN fence, DROP COLUMN written;

CREATE OR REPLACE FUNCTION end_counting() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    DELETE FROM session_heads WHERE session_id = old.session_id;
    DELETE FROM session_bytes WHERE session_id = old.session_id;
    DELETE FROM share_links WHERE session_id = old.session_id;
    RETURN NULL;
END $$;
