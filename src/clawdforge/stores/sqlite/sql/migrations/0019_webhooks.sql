-- Where apps are told of their events, and what is to be delivered there. A delivery is written in the transaction of
-- its event. The secrets stand here alone, and no reply, event, log or audit has them.
CREATE TABLE webhook_endpoints (
    app_name    TEXT NOT NULL,
    endpoint_id TEXT NOT NULL,
    url         TEXT NOT NULL,
    events      TEXT NOT NULL,
    secret      TEXT NOT NULL,
    old_secret  TEXT,
    old_until   INTEGER,
    disabled    TEXT,
    created_at  INTEGER NOT NULL,
    dropped     INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (app_name, endpoint_id)
) WITHOUT ROWID;

CREATE TABLE webhook_deliveries (
    delivery_id TEXT PRIMARY KEY,
    app_name    TEXT NOT NULL,
    endpoint_id TEXT NOT NULL,
    event       TEXT NOT NULL,
    session_id  TEXT,
    body        TEXT NOT NULL,
    state       TEXT NOT NULL,
    attempts    INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    next_at     INTEGER NOT NULL,
    gives_up_at INTEGER NOT NULL,
    done_at     INTEGER,
    status      INTEGER,
    error       TEXT
) WITHOUT ROWID;
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (app_name, next_at, delivery_id) WHERE state = 'waiting';
CREATE INDEX webhook_deliveries_listed ON webhook_deliveries (app_name, endpoint_id, created_at, delivery_id);
CREATE INDEX webhook_deliveries_in_state
ON webhook_deliveries (app_name, endpoint_id, state, created_at, delivery_id);
CREATE INDEX webhook_deliveries_done ON webhook_deliveries (done_at) WHERE done_at IS NOT NULL;
