-- Prompts that the server submits by itself, and what became of each of their times. The time that comes next moves on
-- in the transaction that writes what became of the last one.
CREATE TABLE schedules (
    app_name     word NOT NULL,
    schedule_id  word NOT NULL,
    title        word NOT NULL,
    prompt       word NOT NULL,
    cron         word,
    at           bigint,
    timezone     word NOT NULL,
    session_id   word,
    new_session  word,
    overlap      word NOT NULL,
    missed       word NOT NULL,
    state        word NOT NULL,
    reason       word,
    next_at      bigint,
    token_id     word,
    may_decide   bigint NOT NULL,
    last_session word,
    last_turn    bigint,
    created_at   bigint NOT NULL,
    PRIMARY KEY (app_name, schedule_id)
);
CREATE INDEX schedules_due ON schedules (next_at, app_name, schedule_id) WHERE next_at IS NOT NULL;
CREATE INDEX schedules_listed ON schedules (app_name, created_at, schedule_id);

CREATE TABLE schedule_occurrences (
    app_name      word NOT NULL,
    schedule_id   word NOT NULL,
    occurrence_id word NOT NULL,
    planned_at    bigint NOT NULL,
    noted_at      bigint NOT NULL,
    by_hand       bigint NOT NULL,
    state         word NOT NULL,
    missed        bigint NOT NULL,
    session_id    word,
    turn_index    bigint,
    error         word,
    code          word,
    PRIMARY KEY (app_name, schedule_id, occurrence_id)
);
CREATE INDEX schedule_occurrences_listed
ON schedule_occurrences (app_name, schedule_id, planned_at, occurrence_id);
