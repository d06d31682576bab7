-- What each session and each app has on the disk, in bytes, by form. Rows of the database are counted in the
-- transaction that writes them: by these triggers, but for appended events, which the store counts by the batch.
-- Files are measured when they change, and the number is written here. A person may change rows with a program of
-- an older SQLite, which has no octet_length.

CREATE TABLE app_bytes (
    app_name    TEXT PRIMARY KEY,
    events      INTEGER NOT NULL DEFAULT 0,
    messages    INTEGER NOT NULL DEFAULT 0,
    uploads     INTEGER NOT NULL DEFAULT 0,
    runs        INTEGER NOT NULL DEFAULT 0,
    homes       INTEGER NOT NULL DEFAULT 0,
    home_copies INTEGER NOT NULL DEFAULT 0,
    snapshots   INTEGER NOT NULL DEFAULT 0,
    workspaces  INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE TABLE session_bytes (
    session_id  TEXT PRIMARY KEY,
    app_name    TEXT NOT NULL,
    events      INTEGER NOT NULL DEFAULT 0,
    messages    INTEGER NOT NULL DEFAULT 0,
    homes       INTEGER NOT NULL DEFAULT 0,
    home_copies INTEGER NOT NULL DEFAULT 0,
    snapshots   INTEGER NOT NULL DEFAULT 0,
    workspaces  INTEGER NOT NULL DEFAULT 0,
    total       INTEGER NOT NULL GENERATED ALWAYS AS
        (events + messages + homes + home_copies + snapshots + workspaces) VIRTUAL
) WITHOUT ROWID;
CREATE INDEX session_bytes_by_size ON session_bytes (app_name, total, session_id);

INSERT INTO session_bytes (session_id, app_name, events, messages)
SELECT sessions.session_id, sessions.app_name, coalesce(logged.bytes, 0), coalesce(said.bytes, 0)
FROM sessions
LEFT JOIN (SELECT session_id, sum(length(data)) AS bytes FROM events GROUP BY session_id) AS logged
    ON logged.session_id = sessions.session_id
LEFT JOIN (
    SELECT session_id, sum(length(CAST(content AS BLOB)) + length(CAST(thinking AS BLOB))
        + length(CAST(tool_calls AS BLOB)) + length(CAST(plan AS BLOB))) AS bytes
    FROM messages GROUP BY session_id) AS said
    ON said.session_id = sessions.session_id;

INSERT INTO app_bytes (app_name)
SELECT app_name FROM apps UNION SELECT app_name FROM sessions UNION SELECT app_name FROM files
UNION SELECT app_name FROM runs;
UPDATE app_bytes SET
    events = (SELECT coalesce(sum(events), 0) FROM session_bytes WHERE app_name = app_bytes.app_name),
    messages = (SELECT coalesce(sum(messages), 0) FROM session_bytes WHERE app_name = app_bytes.app_name),
    uploads = (SELECT coalesce(sum(size), 0) FROM files WHERE app_name = app_bytes.app_name),
    runs = (SELECT coalesce(sum(length(CAST(prompt AS BLOB)) + length(CAST(coalesce(error, '') AS BLOB))), 0) FROM runs
            WHERE app_name = app_bytes.app_name);

CREATE TRIGGER sessions_counted AFTER INSERT ON sessions BEGIN
    INSERT INTO app_bytes (app_name) VALUES (new.app_name) ON CONFLICT DO NOTHING;
    INSERT INTO session_bytes (session_id, app_name) VALUES (new.session_id, new.app_name) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER sessions_uncounted AFTER DELETE ON sessions BEGIN
    DELETE FROM session_bytes WHERE session_id = old.session_id;
END;
CREATE TRIGGER session_bytes_changed AFTER UPDATE ON session_bytes BEGIN
    UPDATE app_bytes SET
        events = events + new.events - old.events,
        messages = messages + new.messages - old.messages,
        homes = homes + new.homes - old.homes,
        home_copies = home_copies + new.home_copies - old.home_copies,
        snapshots = snapshots + new.snapshots - old.snapshots,
        workspaces = workspaces + new.workspaces - old.workspaces
    WHERE app_name = new.app_name;
END;
CREATE TRIGGER session_bytes_removed AFTER DELETE ON session_bytes BEGIN
    UPDATE app_bytes SET
        events = events - old.events,
        messages = messages - old.messages,
        homes = homes - old.homes,
        home_copies = home_copies - old.home_copies,
        snapshots = snapshots - old.snapshots,
        workspaces = workspaces - old.workspaces
    WHERE app_name = old.app_name;
END;

-- What a session began with is numbered from 0 down, and written by statements; what is appended is not.
CREATE TRIGGER events_brought AFTER INSERT ON events WHEN new.seq <= 0 BEGIN
    UPDATE session_bytes SET events = events + length(new.data) WHERE session_id = new.session_id;
END;
CREATE TRIGGER events_removed AFTER DELETE ON events BEGIN
    UPDATE session_bytes SET events = events - length(old.data) WHERE session_id = old.session_id;
END;

CREATE TRIGGER events_edited AFTER UPDATE OF data ON events BEGIN
    UPDATE session_bytes SET events = events + length(new.data) - length(old.data) WHERE session_id = new.session_id;
END;

CREATE TRIGGER messages_counted AFTER INSERT ON messages BEGIN
    UPDATE session_bytes SET messages = messages
        + length(CAST(new.content AS BLOB)) + length(CAST(new.thinking AS BLOB))
        + length(CAST(new.tool_calls AS BLOB)) + length(CAST(new.plan AS BLOB))
    WHERE session_id = new.session_id;
END;
CREATE TRIGGER messages_uncounted AFTER DELETE ON messages BEGIN
    UPDATE session_bytes SET messages = messages
        - length(CAST(old.content AS BLOB)) - length(CAST(old.thinking AS BLOB))
        - length(CAST(old.tool_calls AS BLOB)) - length(CAST(old.plan AS BLOB))
    WHERE session_id = old.session_id;
END;
CREATE TRIGGER messages_recounted AFTER UPDATE OF content, thinking, tool_calls, plan ON messages BEGIN
    UPDATE session_bytes SET messages = messages
        + length(CAST(new.content AS BLOB)) + length(CAST(new.thinking AS BLOB))
        + length(CAST(new.tool_calls AS BLOB)) + length(CAST(new.plan AS BLOB))
        - length(CAST(old.content AS BLOB)) - length(CAST(old.thinking AS BLOB))
        - length(CAST(old.tool_calls AS BLOB)) - length(CAST(old.plan AS BLOB))
    WHERE session_id = new.session_id;
END;

CREATE TRIGGER files_counted AFTER INSERT ON files BEGIN
    INSERT INTO app_bytes (app_name, uploads) VALUES (new.app_name, new.size)
    ON CONFLICT DO UPDATE SET uploads = uploads + excluded.uploads;
END;
CREATE TRIGGER files_uncounted AFTER DELETE ON files BEGIN
    UPDATE app_bytes SET uploads = uploads - old.size WHERE app_name = old.app_name;
END;
CREATE TRIGGER files_edited AFTER UPDATE OF size ON files BEGIN
    UPDATE app_bytes SET uploads = uploads + new.size - old.size WHERE app_name = new.app_name;
END;
CREATE TRIGGER runs_counted AFTER INSERT ON runs BEGIN
    INSERT INTO app_bytes (app_name, runs)
    VALUES (new.app_name, length(CAST(new.prompt AS BLOB)) + length(CAST(coalesce(new.error, '') AS BLOB)))
    ON CONFLICT DO UPDATE SET runs = runs + excluded.runs;
END;
CREATE TRIGGER runs_uncounted AFTER DELETE ON runs BEGIN
    UPDATE app_bytes SET runs = runs - length(CAST(old.prompt AS BLOB)) - length(CAST(coalesce(old.error, '') AS BLOB))
    WHERE app_name = old.app_name;
END;

-- How many agents of an app may live at one time; null is the server's own setting.
ALTER TABLE apps ADD COLUMN max_agents INTEGER;

-- The entry of the audit after which its chain goes on here: those up to it were archived.
CREATE TABLE audit_base (
    only   INTEGER PRIMARY KEY CHECK (only = 1),
    number INTEGER NOT NULL,
    hash   TEXT NOT NULL
);
