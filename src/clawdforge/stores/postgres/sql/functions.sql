-- Functions of the connection that writes, which are gone with it. One lock is that of all who write.

-- All of them go by keys: a plan that is made for each call anew takes longer than what is planned. And since it is made
-- when the tables may still be empty, statements over many sessions leave Postgres no other way than by their keys: it
-- would take the first index that begins with something else, as long as all rows are one page.
SET plan_cache_mode = force_generic_plan;

-- Held by the connection from before it reads until it has written. A server that stops in between loses both.
CREATE FUNCTION pg_temp.take_lock() RETURNS void LANGUAGE plpgsql AS $lock$ BEGIN
    PERFORM pg_advisory_lock(4710423071);
    PERFORM set_config('idle_session_timeout', current_setting('idle_in_transaction_session_timeout'), false);
END $lock$;

-- What the connection held is the transaction's from here on, which gives it back when it has committed. With $1 it
-- was to be held since something was read, and nothing may be written if it was not.
CREATE FUNCTION pg_temp.keep_lock(boolean) RETURNS void LANGUAGE plpgsql AS $lock$ BEGIN
    PERFORM pg_advisory_xact_lock(4710423071);
    IF $1 AND NOT pg_advisory_unlock(4710423071) THEN RAISE 'the lock was lost' USING ERRCODE = 'CF001'; END IF;
    PERFORM pg_advisory_unlock_all();
    PERFORM set_config('idle_session_timeout', '0', false);
END $lock$;

-- What is said in many sessions: events, how many bytes they are, and how far each log goes then. Events that follow one
-- another and differ in nothing but their data are one row of $1 to $7; where the data of each begins and how long it
-- is stands in $8 and $9, and the data of all of them in $10.
CREATE FUNCTION pg_temp.append(
    text, text, text, text, text, text, text, text, text, bytea, text, text, text, text, text, text, text, text)
RETURNS void LANGUAGE plpgsql AS $append$ DECLARE
    begins bigint[] := $8::bigint[]; sizes bigint[] := $9::bigint[]; moving text[] := $14::text[]; moved bigint;
BEGIN
    INSERT INTO events (session_id, seq, turn, type, by_agent, data, compact)
    SELECT run.session, run.seq + place, run.turn, run.type, run.by_agent,
        substring($10 FROM begins[run.begun + place]::int FOR sizes[run.begun + place]::int), 1
    FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[])
        AS run (session, seq, turn, type, by_agent, begun, last)
    CROSS JOIN LATERAL generate_series(0, run.last) AS place;
    PERFORM set_config('clawdforge.summed', 'on', true);
    WITH counted AS (
        UPDATE session_bytes SET events = events + one.bytes
        FROM unnest($11::text[], $12::text[], $13::bigint[]) AS one (session, app, bytes)
        WHERE session_id = one.session AND app_name IS NOT DISTINCT FROM one.app RETURNING one.app, one.bytes)
    UPDATE app_bytes SET events = events + summed.bytes
    FROM (SELECT app, sum(bytes) AS bytes FROM counted GROUP BY app) AS summed WHERE app_name = summed.app;
    PERFORM set_config('clawdforge.summed', '', true);
    UPDATE session_heads SET head = one.head, written = coalesce(one.written, session_heads.written),
        moved_at = greatest(moved_at, one.at)
    FROM unnest(moving, $15::text[], $16::bigint[], $17::bigint[], $18::bigint[]) AS one (session, app, head, written, at)
    WHERE session_id = one.session
        AND (SELECT app_name = one.app AND deleted_at IS NULL FROM sessions WHERE sessions.session_id = one.session);
    GET DIAGNOSTICS moved = ROW_COUNT;
    IF moved <> cardinality(moving) THEN RAISE 'a session is gone' USING ERRCODE = 'CF001'; END IF;
    UPDATE sessions SET updated_at = one.at FROM unnest(moving, $18::bigint[]) AS one (session, at)
    WHERE session_id = one.session AND updated_at < one.at AND activity NOT IN ('queued', 'running', 'waiting');
END $append$
