-- Where apps are told of their events, and what is to be delivered there. A delivery is written in the transaction of
-- its event. The secrets stand here alone, and no reply, event, log or audit has them.
CREATE TABLE webhook_endpoints (
    app_name    word NOT NULL,
    endpoint_id word NOT NULL,
    url         word NOT NULL,
    events      word NOT NULL,
    secret      word NOT NULL,
    old_secret  word,
    old_until   bigint,
    disabled    word,
    created_at  bigint NOT NULL,
    dropped     bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (app_name, endpoint_id)
);

CREATE TABLE webhook_deliveries (
    delivery_id word PRIMARY KEY,
    app_name    word NOT NULL,
    endpoint_id word NOT NULL,
    event       word NOT NULL,
    session_id  word,
    body        word NOT NULL,
    state       word NOT NULL,
    attempts    bigint NOT NULL,
    created_at  bigint NOT NULL,
    next_at     bigint NOT NULL,
    gives_up_at bigint NOT NULL,
    done_at     bigint,
    status      bigint,
    error       word
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (app_name, next_at, delivery_id) WHERE state = 'waiting';
CREATE INDEX webhook_deliveries_listed ON webhook_deliveries (app_name, endpoint_id, created_at, delivery_id);
CREATE INDEX webhook_deliveries_in_state
ON webhook_deliveries (app_name, endpoint_id, state, created_at, delivery_id);
CREATE INDEX webhook_deliveries_done ON webhook_deliveries (done_at) WHERE done_at IS NOT NULL;
