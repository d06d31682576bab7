-- What is kept right by itself with every write: which turns name an upload, how many messages are visible, and how
-- many bytes each session and each app has.

CREATE FUNCTION note_files() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP <> 'INSERT' AND old.files <> '[]' THEN
        DELETE FROM turn_files WHERE file_token IN (SELECT json_array_elements_text(old.files::json))
            AND session_id = old.session_id AND turn_index = old.turn_index;
    END IF;
    IF TG_OP <> 'DELETE' AND new.files <> '[]' THEN
        INSERT INTO turn_files SELECT value, new.session_id, new.turn_index
        FROM json_array_elements_text(new.files::json) AS each (value) ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER turns_filed AFTER INSERT OR DELETE OR UPDATE OF files ON turns
FOR EACH ROW EXECUTE FUNCTION note_files();

CREATE FUNCTION count_messages() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'INSERT' THEN
        UPDATE sessions SET last_message = greatest(last_message, new.seq),
            message_count = message_count + (new.cut = 0 AND new.archived = 0)::int
        WHERE session_id = new.session_id;
        UPDATE session_bytes SET messages = messages
            + said_bytes(new.content, new.thinking, new.tool_calls, new.plan)
        WHERE session_id = new.session_id;
    ELSIF TG_OP = 'DELETE' THEN
        UPDATE sessions SET message_count = message_count - 1
        WHERE session_id = old.session_id AND old.cut = 0 AND old.archived = 0
            AND old.seq > archived_to AND old.seq NOT BETWEEN cut_from AND cut_to;
        UPDATE session_bytes SET messages = messages
            - said_bytes(old.content, old.thinking, old.tool_calls, old.plan)
        WHERE session_id = old.session_id;
    ELSE
        IF (old.cut = 0 AND old.archived = 0) <> (new.cut = 0 AND new.archived = 0) THEN
            UPDATE sessions SET message_count = message_count
                + (new.cut = 0 AND new.archived = 0)::int - (old.cut = 0 AND old.archived = 0)::int
            WHERE session_id = new.session_id AND new.seq > archived_to AND new.seq NOT BETWEEN cut_from AND cut_to;
        END IF;
        IF (old.content, old.thinking, old.tool_calls, old.plan)
            <> (new.content, new.thinking, new.tool_calls, new.plan) THEN
            UPDATE session_bytes SET messages = messages
                + said_bytes(new.content, new.thinking, new.tool_calls, new.plan)
                - said_bytes(old.content, old.thinking, old.tool_calls, old.plan)
            WHERE session_id = new.session_id;
        END IF;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER messages_counted AFTER INSERT OR DELETE OR UPDATE ON messages
FOR EACH ROW EXECUTE FUNCTION count_messages();

CREATE FUNCTION begin_counting() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO app_bytes (app_name) VALUES (new.app_name) ON CONFLICT DO NOTHING;
    INSERT INTO session_bytes (session_id, app_name) VALUES (new.session_id, new.app_name) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER sessions_counted AFTER INSERT ON sessions FOR EACH ROW EXECUTE FUNCTION begin_counting();

CREATE FUNCTION end_counting() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    DELETE FROM session_bytes WHERE session_id = old.session_id;
    DELETE FROM share_links WHERE session_id = old.session_id;
    RETURN NULL;
END $$;
CREATE TRIGGER sessions_uncounted AFTER DELETE ON sessions FOR EACH ROW EXECUTE FUNCTION end_counting();

CREATE FUNCTION sum_bytes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'DELETE' THEN
        UPDATE app_bytes SET events = events - old.events, messages = messages - old.messages,
            homes = homes - old.homes, home_copies = home_copies - old.home_copies,
            snapshots = snapshots - old.snapshots, workspaces = workspaces - old.workspaces
        WHERE app_name = old.app_name;
    ELSE
        UPDATE app_bytes SET events = events + new.events - old.events, messages = messages + new.messages - old.messages,
            homes = homes + new.homes - old.homes, home_copies = home_copies + new.home_copies - old.home_copies,
            snapshots = snapshots + new.snapshots - old.snapshots, workspaces = workspaces + new.workspaces - old.workspaces
        WHERE app_name = new.app_name;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER session_bytes_summed AFTER DELETE OR UPDATE ON session_bytes
FOR EACH ROW EXECUTE FUNCTION sum_bytes();

-- What a session began with is numbered from 0 down, and counted here; what is appended is counted by the batch.
CREATE FUNCTION count_events() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'INSERT' THEN
        UPDATE session_bytes SET events = events + octet_length(new.data) WHERE session_id = new.session_id;
    ELSE
        UPDATE session_bytes SET events = events - octet_length(old.data) WHERE session_id = old.session_id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER events_brought AFTER INSERT ON events FOR EACH ROW WHEN (new.seq <= 0) EXECUTE FUNCTION count_events();
CREATE TRIGGER events_removed AFTER DELETE ON events FOR EACH ROW EXECUTE FUNCTION count_events();
CREATE TRIGGER packs_counted AFTER INSERT OR DELETE ON packs FOR EACH ROW EXECUTE FUNCTION count_events();

CREATE FUNCTION count_files() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO app_bytes (app_name, uploads) VALUES (new.app_name, new.size)
        ON CONFLICT (app_name) DO UPDATE SET uploads = app_bytes.uploads + excluded.uploads;
    ELSE
        UPDATE app_bytes SET uploads = uploads - old.size WHERE app_name = old.app_name;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER files_counted AFTER INSERT OR DELETE ON files FOR EACH ROW EXECUTE FUNCTION count_files();

CREATE FUNCTION count_runs() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO app_bytes (app_name, runs) VALUES (new.app_name, run_bytes(new.prompt, new.error))
        ON CONFLICT (app_name) DO UPDATE SET runs = app_bytes.runs + excluded.runs;
    ELSE
        UPDATE app_bytes SET runs = runs - run_bytes(old.prompt, old.error) WHERE app_name = old.app_name;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER runs_counted AFTER INSERT OR DELETE ON runs FOR EACH ROW EXECUTE FUNCTION count_runs();
