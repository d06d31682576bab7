-- Prompts that the server submits by itself, and what became of each of their times. The time that comes next moves on
-- in the transaction that writes what became of the last one.
CREATE TABLE schedules (
    app_name     TEXT NOT NULL,
    schedule_id  TEXT NOT NULL,
    title        TEXT NOT NULL,
    prompt       TEXT NOT NULL,
    cron         TEXT,
    at           INTEGER,
    timezone     TEXT NOT NULL,
    session_id   TEXT,
    new_session  TEXT,
    overlap      TEXT NOT NULL,
    missed       TEXT NOT NULL,
    state        TEXT NOT NULL,
    reason       TEXT,
    next_at      INTEGER,
    token_id     TEXT,
    may_decide   INTEGER NOT NULL,
    last_session TEXT,
    last_turn    INTEGER,
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (app_name, schedule_id)
);
CREATE INDEX schedules_due ON schedules (next_at, app_name, schedule_id) WHERE next_at IS NOT NULL;
CREATE INDEX schedules_listed ON schedules (app_name, created_at, schedule_id);

CREATE TABLE schedule_occurrences (
    app_name      TEXT NOT NULL,
    schedule_id   TEXT NOT NULL,
    occurrence_id TEXT NOT NULL,
    planned_at    INTEGER NOT NULL,
    noted_at      INTEGER NOT NULL,
    by_hand       INTEGER NOT NULL,
    state         TEXT NOT NULL,
    missed        INTEGER NOT NULL,
    session_id    TEXT,
    turn_index    INTEGER,
    error         TEXT,
    code          TEXT,
    PRIMARY KEY (app_name, schedule_id, occurrence_id)
) WITHOUT ROWID;
CREATE INDEX schedule_occurrences_listed
ON schedule_occurrences (app_name, schedule_id, planned_at, occurrence_id);
