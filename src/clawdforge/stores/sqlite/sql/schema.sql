-- What all migrations make together. Made from them by scripts/golden; edit none of it by hand.

CREATE TABLE schema_migrations (
    version    INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    applied_at INTEGER NOT NULL
);

CREATE TABLE apps (
    app_name            TEXT PRIMARY KEY,
    created_at          INTEGER NOT NULL,
    max_sessions        INTEGER,
    max_turns_in_flight INTEGER,
    max_bytes           INTEGER
, workspace_roots TEXT NOT NULL DEFAULT '[]', max_requests_per_sec INTEGER, max_open_requests INTEGER, max_readers INTEGER, max_agents INTEGER, mcp_servers TEXT NOT NULL DEFAULT '{}') WITHOUT ROWID;

CREATE TABLE tokens (
    token_id   TEXT PRIMARY KEY,
    app_name   TEXT NOT NULL,
    hash       BLOB NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    note       TEXT,
    expires_at INTEGER,
    revoked_at INTEGER
, scopes TEXT NOT NULL DEFAULT '["read","prompt","decide","admin"]', last_used_at INTEGER);

CREATE INDEX tokens_of_app ON tokens (app_name, created_at, token_id);

CREATE TABLE sessions (
    session_id          TEXT PRIMARY KEY,
    app_name            TEXT NOT NULL,
    agent               TEXT NOT NULL,
    cwd                 TEXT NOT NULL,
    created_at          INTEGER NOT NULL,
    updated_at          INTEGER NOT NULL,
    last_turn_at        INTEGER,
    closed_at           INTEGER,
    deleted_at          INTEGER,
    model               TEXT,
    persona             TEXT,
    instructions        TEXT,
    own_cwd             INTEGER NOT NULL DEFAULT 0,
    title               TEXT NOT NULL DEFAULT '',
    meta                TEXT NOT NULL DEFAULT '{}',
    labels              TEXT NOT NULL DEFAULT '[]',
    pinned              INTEGER NOT NULL DEFAULT 0,
    permission_mode     TEXT NOT NULL DEFAULT 'approve_all',
    on_interrupt        TEXT NOT NULL DEFAULT 'hold',
    retention           TEXT NOT NULL DEFAULT 'ttl',
    plan_mode           INTEGER NOT NULL DEFAULT 0,
    project_key         TEXT,
    parent_session_id   TEXT,
    forked_from         TEXT,
    depth               INTEGER NOT NULL DEFAULT 0,
    turn_count          INTEGER NOT NULL DEFAULT 0,
    last_turn           INTEGER NOT NULL DEFAULT 0,
    head                INTEGER NOT NULL DEFAULT 0,
    last_message        INTEGER NOT NULL DEFAULT 0,
    message_count       INTEGER NOT NULL DEFAULT 0,
    context             INTEGER NOT NULL DEFAULT 1,
    context_plan        TEXT NOT NULL DEFAULT 'new',
    agent_session_id    TEXT,
    files_plan          TEXT,
    redo                TEXT NOT NULL DEFAULT '[]',
    holder              TEXT,
    fence               INTEGER NOT NULL DEFAULT 0,
    total_input_tokens  INTEGER NOT NULL DEFAULT 0,
    total_output_tokens INTEGER NOT NULL DEFAULT 0,
    input_tokens        INTEGER NOT NULL DEFAULT 0,
    output_tokens       INTEGER NOT NULL DEFAULT 0,
    cached_tokens       INTEGER NOT NULL DEFAULT 0,
    cost_usd            REAL,
    estimated_cost_usd  REAL
, workspace_identity TEXT, cut_from INTEGER NOT NULL DEFAULT 0, cut_to INTEGER NOT NULL DEFAULT 0, cut_turns TEXT NOT NULL DEFAULT '[]', archived_to INTEGER NOT NULL DEFAULT 0, activity TEXT NOT NULL DEFAULT 'idle', last_outcome TEXT, forked_after INTEGER, queue_order TEXT NOT NULL DEFAULT '[]', mcp_servers TEXT NOT NULL DEFAULT '{}', written INTEGER NOT NULL DEFAULT 0, folder TEXT, home_at TEXT, identities TEXT NOT NULL DEFAULT '{}', listed_at INTEGER NOT NULL DEFAULT 0, listed_as TEXT NOT NULL DEFAULT 'idle', idle_since INTEGER NOT NULL DEFAULT 0);

CREATE INDEX sessions_capped ON sessions (app_name)
    WHERE retention = 'ttl' AND closed_at IS NULL AND deleted_at IS NULL;

CREATE INDEX sessions_closed ON sessions (closed_at)
    WHERE retention = 'ttl' AND closed_at IS NOT NULL AND deleted_at IS NULL;

CREATE INDEX sessions_of_workspace ON sessions (cwd) WHERE own_cwd = 1;

CREATE INDEX sessions_deleted ON sessions (deleted_at) WHERE deleted_at IS NOT NULL;

CREATE TABLE turns (
    session_id   TEXT NOT NULL,
    turn_index   INTEGER NOT NULL,
    state        TEXT NOT NULL,
    prompt       TEXT NOT NULL,
    queued_at    INTEGER NOT NULL,
    files        TEXT NOT NULL DEFAULT '[]',
    outcome      TEXT,
    stop_reason  TEXT,
    error        TEXT,
    code         TEXT,
    error_extra  TEXT NOT NULL DEFAULT '{}',
    key          TEXT,
    fingerprint  TEXT,
    retry_of     INTEGER,
    automatic    INTEGER NOT NULL DEFAULT 0,
    cut          INTEGER NOT NULL DEFAULT 0,
    timeout_secs REAL,
    if_busy      TEXT NOT NULL DEFAULT 'queue',
    context      INTEGER NOT NULL DEFAULT 1,
    started_at   INTEGER,
    ended_at     INTEGER,
    first_seq    INTEGER,
    last_seq     INTEGER,
    usage        TEXT, limits TEXT NOT NULL DEFAULT '{}', stopped_by TEXT, token_id TEXT, parent INTEGER, traceparent TEXT,
    PRIMARY KEY (session_id, turn_index)
);

CREATE UNIQUE INDEX turns_one_active ON turns (session_id) WHERE state IN ('running', 'waiting');

CREATE UNIQUE INDEX turns_key ON turns (session_id, key) WHERE key IS NOT NULL;

CREATE TABLE turn_files (
    file_token TEXT NOT NULL,
    session_id TEXT NOT NULL,
    turn_index INTEGER NOT NULL,
    PRIMARY KEY (file_token, session_id, turn_index)
) WITHOUT ROWID;

CREATE TRIGGER turns_added AFTER INSERT ON turns WHEN new.files <> '[]' BEGIN
    INSERT OR IGNORE INTO turn_files
    SELECT value, new.session_id, new.turn_index FROM json_each(new.files);
END;

CREATE TRIGGER turns_removed AFTER DELETE ON turns WHEN old.files <> '[]' BEGIN
    DELETE FROM turn_files
    WHERE file_token IN (SELECT value FROM json_each(old.files))
      AND session_id = old.session_id AND turn_index = old.turn_index;
END;

CREATE TABLE events (
    session_id TEXT NOT NULL,
    seq        INTEGER NOT NULL,
    turn       INTEGER,
    type       TEXT NOT NULL,
    by_agent   INTEGER NOT NULL,
    data       BLOB NOT NULL, compact INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (session_id, seq)
);

CREATE TABLE messages (
    id          INTEGER PRIMARY KEY,
    session_id  TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    role        TEXT NOT NULL,
    content     TEXT NOT NULL,
    ts          INTEGER NOT NULL,
    turn        INTEGER,
    thinking    TEXT NOT NULL DEFAULT '',
    tool_calls  TEXT NOT NULL DEFAULT '[]',
    plan        TEXT NOT NULL DEFAULT '[]',
    token_count INTEGER NOT NULL DEFAULT 0,
    is_summary  INTEGER NOT NULL DEFAULT 0,
    archived    INTEGER NOT NULL DEFAULT 0,
    cut         INTEGER NOT NULL DEFAULT 0,
    pending     INTEGER NOT NULL DEFAULT 0,
    truncated   INTEGER NOT NULL DEFAULT 0, stale INTEGER NOT NULL DEFAULT 0,
    UNIQUE (session_id, seq)
);

CREATE INDEX messages_cut ON messages (session_id, seq) WHERE cut = 1;

CREATE TABLE message_ranges (
    number   INTEGER PRIMARY KEY,
    app_name TEXT NOT NULL UNIQUE
);

CREATE VIEW message_texts AS SELECT id, substr(content, 1, 100000) AS content FROM messages;

CREATE VIRTUAL TABLE messages_fts USING fts5 (
    content, content = 'message_texts', content_rowid = 'id',
    tokenize = 'unicode61 remove_diacritics 2', prefix = '3 4 5'
);

CREATE TABLE permissions (
    permission_id TEXT PRIMARY KEY,
    session_id    TEXT NOT NULL,
    turn_index    INTEGER NOT NULL,
    tool          TEXT NOT NULL,
    kind          TEXT,
    request       TEXT NOT NULL DEFAULT '{}',
    requested_at  INTEGER NOT NULL,
    options       TEXT NOT NULL DEFAULT '[]',
    state         TEXT NOT NULL DEFAULT 'pending',
    decision      TEXT,
    option_id     TEXT,
    reason        TEXT,
    decided_at    INTEGER
);

CREATE INDEX permissions_of_session ON permissions (session_id, requested_at, permission_id);

CREATE INDEX permissions_pending ON permissions (session_id, requested_at, permission_id)
    WHERE state = 'pending';

CREATE INDEX permissions_granted ON permissions (session_id, tool, kind) WHERE decision = 'allow_always';

CREATE TABLE files (
    file_token TEXT PRIMARY KEY,
    app_name   TEXT NOT NULL,
    name       TEXT NOT NULL,
    size       INTEGER NOT NULL,
    path       TEXT NOT NULL,
    created_at INTEGER NOT NULL
, pieces TEXT NOT NULL DEFAULT '[]');

CREATE INDEX files_of_app ON files (app_name, size);

CREATE INDEX files_by_age ON files (created_at, file_token);

CREATE TABLE personas (
    app_name        TEXT NOT NULL,
    name            TEXT NOT NULL,
    agent           TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    model           TEXT,
    permission_mode TEXT,
    instructions    TEXT,
    plan_mode       INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (app_name, name)
);

CREATE TABLE session_events (
    number     INTEGER PRIMARY KEY,
    app_name   TEXT NOT NULL,
    session_id TEXT,
    event      TEXT NOT NULL,
    at         INTEGER NOT NULL,
    details    TEXT NOT NULL DEFAULT '{}',
    hash       TEXT NOT NULL
);

CREATE INDEX session_events_of_app ON session_events (app_name, number);

CREATE TABLE runs (
    run_id      TEXT PRIMARY KEY,
    app_name    TEXT NOT NULL,
    model       TEXT,
    prompt      TEXT NOT NULL,
    ok          INTEGER NOT NULL,
    stop_reason TEXT NOT NULL,
    duration_ms INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    error       TEXT
);

CREATE INDEX runs_of_app ON runs (app_name, created_at);

CREATE TABLE nodes (
    node       TEXT PRIMARY KEY,
    url        TEXT,
    started_at INTEGER NOT NULL,
    seen_at    INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE place (
    only     INTEGER PRIMARY KEY CHECK (only = 1),
    identity TEXT NOT NULL
);

CREATE INDEX sessions_by_folder ON sessions (cwd, app_name, session_id)
    WHERE closed_at IS NULL AND deleted_at IS NULL;

CREATE INDEX sessions_by_identity ON sessions (workspace_identity, app_name, session_id)
    WHERE closed_at IS NULL AND deleted_at IS NULL AND workspace_identity IS NOT NULL;

CREATE INDEX sessions_unsettled ON sessions (session_id) WHERE cut_from + archived_to > 0;

CREATE INDEX messages_stale ON messages (id) WHERE stale = 1;

CREATE TRIGGER messages_added AFTER INSERT ON messages BEGIN
    UPDATE sessions SET
        last_message = max(last_message, new.seq),
        message_count = message_count + (new.cut = 0 AND new.archived = 0)
    WHERE session_id = new.session_id;
    INSERT INTO messages_fts (rowid, content)
    SELECT new.id, substr(new.content, 1, 100000) WHERE new.cut = 0 AND new.archived = 0 AND new.stale = 0;
END;

CREATE TRIGGER messages_removed AFTER DELETE ON messages BEGIN
    UPDATE sessions SET message_count = message_count - 1
    WHERE session_id = old.session_id AND old.cut = 0 AND old.archived = 0
      AND old.seq > archived_to AND old.seq NOT BETWEEN cut_from AND cut_to;
    INSERT INTO messages_fts (messages_fts, rowid, content)
    SELECT 'delete', old.id, substr(old.content, 1, 100000) WHERE (old.cut = 0 AND old.archived = 0) <> old.stale;
END;

CREATE TRIGGER messages_shown AFTER UPDATE OF cut, archived ON messages
WHEN (old.cut = 0 AND old.archived = 0) <> (new.cut = 0 AND new.archived = 0) BEGIN
    UPDATE sessions SET message_count = message_count
        + (new.cut = 0 AND new.archived = 0) - (old.cut = 0 AND old.archived = 0)
    WHERE session_id = new.session_id AND new.seq > archived_to AND new.seq NOT BETWEEN cut_from AND cut_to;
    UPDATE messages SET stale = 1 - old.stale WHERE id = new.id;
END;

CREATE TRIGGER messages_reworded AFTER UPDATE OF content ON messages WHEN old.content <> new.content BEGIN
    INSERT INTO messages_fts (messages_fts, rowid, content)
    SELECT 'delete', old.id, substr(old.content, 1, 100000) WHERE (old.cut = 0 AND old.archived = 0) <> old.stale;
    INSERT INTO messages_fts (rowid, content)
    SELECT new.id, substr(new.content, 1, 100000) WHERE (old.cut = 0 AND old.archived = 0) <> old.stale;
END;

CREATE TABLE pauses (
    app_name  TEXT NOT NULL DEFAULT '',
    agent     TEXT NOT NULL DEFAULT '',
    reason    TEXT,
    paused_at INTEGER NOT NULL,
    PRIMARY KEY (app_name, agent)
) WITHOUT ROWID;

CREATE TABLE budgets (
    budget_id    TEXT PRIMARY KEY,
    app_name     TEXT NOT NULL,
    scope        TEXT NOT NULL,
    scope_id     TEXT NOT NULL DEFAULT '',
    period       TEXT NOT NULL,
    by_operator  INTEGER NOT NULL DEFAULT 0,
    max_tokens   INTEGER,
    max_cost     INTEGER,
    share_tokens INTEGER NOT NULL DEFAULT 0,
    share_cost   INTEGER NOT NULL DEFAULT 0,
    warn_at      REAL NOT NULL,
    action       TEXT NOT NULL,
    created_at   INTEGER NOT NULL
) WITHOUT ROWID;

CREATE UNIQUE INDEX budgets_of_app ON budgets (app_name, scope, scope_id, period, by_operator);

CREATE TABLE purses (
    app_name         TEXT NOT NULL,
    budget_id        TEXT NOT NULL,
    starts_at        INTEGER NOT NULL,
    spent_tokens     INTEGER NOT NULL DEFAULT 0,
    spent_cost       INTEGER NOT NULL DEFAULT 0,
    estimated_tokens INTEGER NOT NULL DEFAULT 0,
    estimated_cost   INTEGER NOT NULL DEFAULT 0,
    reserved_tokens  INTEGER NOT NULL DEFAULT 0,
    reserved_cost    INTEGER NOT NULL DEFAULT 0,
    warned_at        INTEGER,
    PRIMARY KEY (app_name, budget_id, starts_at)
) WITHOUT ROWID;

CREATE TABLE reservations (
    app_name   TEXT NOT NULL,
    holder_id  TEXT NOT NULL,
    turn_index INTEGER NOT NULL,
    budget_id  TEXT NOT NULL,
    starts_at  INTEGER NOT NULL,
    tokens     INTEGER NOT NULL DEFAULT 0,
    cost       INTEGER NOT NULL DEFAULT 0,
    asks       INTEGER NOT NULL DEFAULT 0, node TEXT,
    PRIMARY KEY (app_name, holder_id, turn_index, budget_id)
) WITHOUT ROWID;

CREATE INDEX reservations_of_purse ON reservations (app_name, budget_id, starts_at);

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

CREATE TABLE audit_base (
    only   INTEGER PRIMARY KEY CHECK (only = 1),
    number INTEGER NOT NULL,
    hash   TEXT NOT NULL
);

CREATE TABLE packs (
    session_id TEXT NOT NULL,
    first_seq  INTEGER NOT NULL,
    last_seq   INTEGER NOT NULL,
    codec      INTEGER NOT NULL,
    raw_bytes  INTEGER NOT NULL,
    data       BLOB NOT NULL,
    PRIMARY KEY (session_id, last_seq)
);

CREATE TRIGGER packs_counted AFTER INSERT ON packs BEGIN
    UPDATE session_bytes SET events = events + length(new.data) WHERE session_id = new.session_id;
END;

CREATE TRIGGER packs_uncounted AFTER DELETE ON packs BEGIN
    UPDATE session_bytes SET events = events - length(old.data) WHERE session_id = old.session_id;
END;

CREATE INDEX sessions_at_work ON sessions (app_name, activity, session_id)
    WHERE deleted_at IS NULL AND activity IN ('queued', 'running', 'waiting');

CREATE INDEX sessions_of_source ON sessions (app_name, forked_from, forked_after, session_id)
    WHERE deleted_at IS NULL AND forked_from IS NOT NULL;

CREATE TABLE login_rounds (
    holder TEXT PRIMARY KEY,
    round  INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE app_changes (
    session_id    TEXT NOT NULL,
    permission_id TEXT NOT NULL DEFAULT '',
    app_name      TEXT NOT NULL,
    number        INTEGER NOT NULL,
    at            INTEGER NOT NULL,
    PRIMARY KEY (session_id, permission_id)
) WITHOUT ROWID;

CREATE UNIQUE INDEX app_changes_in_order ON app_changes (app_name, number, at);

CREATE TABLE change_counts (
    app_name  TEXT PRIMARY KEY,
    last      INTEGER NOT NULL DEFAULT 0,
    forgotten INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE TRIGGER turns_refiled AFTER UPDATE OF files ON turns WHEN old.files <> new.files BEGIN
    DELETE FROM turn_files
    WHERE file_token IN (SELECT value FROM json_each(old.files))
      AND session_id = old.session_id AND turn_index = old.turn_index;
    INSERT OR IGNORE INTO turn_files
    SELECT value, new.session_id, new.turn_index FROM json_each(new.files);
END;

CREATE TABLE share_links (
    share_id   TEXT PRIMARY KEY,
    app_name   TEXT NOT NULL,
    session_id TEXT NOT NULL,
    hash       BLOB NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    up_to_turn INTEGER NOT NULL,
    last_seq   INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX share_links_of_session ON share_links (session_id, created_at, share_id);

CREATE TRIGGER share_links_purged AFTER DELETE ON sessions BEGIN
    DELETE FROM share_links WHERE session_id = old.session_id;
END;

CREATE TABLE usage_days (
    app_name         TEXT NOT NULL,
    day              TEXT NOT NULL,
    agent            TEXT NOT NULL,
    model            TEXT NOT NULL,
    turns            INTEGER NOT NULL,
    input_tokens     INTEGER NOT NULL,
    output_tokens    INTEGER NOT NULL,
    cached_tokens    INTEGER NOT NULL,
    cost_usd         REAL,
    estimated_input  INTEGER NOT NULL,
    estimated_output INTEGER NOT NULL,
    estimated_cost   REAL,
    PRIMARY KEY (app_name, day, agent, model)
) WITHOUT ROWID;

CREATE TABLE app_secrets (
    app_name TEXT NOT NULL,
    name     TEXT NOT NULL,
    value    TEXT NOT NULL,
    PRIMARY KEY (app_name, name)
) WITHOUT ROWID;

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

CREATE INDEX webhook_deliveries_listed ON webhook_deliveries (app_name, endpoint_id, created_at, delivery_id);

CREATE INDEX webhook_deliveries_in_state
ON webhook_deliveries (app_name, endpoint_id, state, created_at, delivery_id);

CREATE INDEX webhook_deliveries_done ON webhook_deliveries (done_at) WHERE done_at IS NOT NULL;

CREATE INDEX webhook_deliveries_due
ON webhook_deliveries (app_name, endpoint_id, next_at, delivery_id) WHERE state = 'waiting';

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

CREATE TABLE long_prompts (
    session_id TEXT NOT NULL,
    turn_index INTEGER NOT NULL,
    prompt     TEXT NOT NULL,
    PRIMARY KEY (session_id, turn_index)
);

CREATE TRIGGER turns_reworded AFTER UPDATE OF prompt ON turns
WHEN typeof(new.prompt) = 'text' AND (typeof(old.prompt) = 'blob' OR length(CAST(new.prompt AS BLOB)) > 16384) BEGIN
    DELETE FROM long_prompts WHERE session_id = new.session_id AND turn_index = new.turn_index;
    INSERT INTO long_prompts
    SELECT new.session_id, new.turn_index, new.prompt WHERE length(CAST(new.prompt AS BLOB)) > 16384;
    UPDATE turns SET prompt = x''
    WHERE session_id = new.session_id AND turn_index = new.turn_index AND length(CAST(prompt AS BLOB)) > 16384;
END;

CREATE TRIGGER turns_removed_long AFTER DELETE ON turns WHEN typeof(old.prompt) = 'blob' BEGIN
    DELETE FROM long_prompts WHERE session_id = old.session_id AND turn_index = old.turn_index;
END;

CREATE TABLE members (
    node       TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    folder     TEXT NOT NULL,
    version    TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    beat       INTEGER NOT NULL,
    state      TEXT NOT NULL
, tells TEXT NOT NULL DEFAULT '{}');

CREATE TABLE duties (
    name TEXT PRIMARY KEY,
    node TEXT NOT NULL
);

CREATE TABLE wishes (
    wish_id    TEXT PRIMARY KEY,
    app_name   TEXT NOT NULL,
    session_id TEXT NOT NULL,
    node       TEXT NOT NULL,
    kind       TEXT NOT NULL,
    wished_at  INTEGER NOT NULL,
    turn_index INTEGER,
    rollback   INTEGER NOT NULL
, body TEXT);

CREATE INDEX wishes_of_node ON wishes (node);

CREATE TABLE blobs (
    place      TEXT PRIMARY KEY,
    app_name   TEXT NOT NULL,
    digest     TEXT NOT NULL,
    size       INTEGER NOT NULL,
    state      TEXT NOT NULL,
    touched_at INTEGER NOT NULL
);

CREATE INDEX blobs_by_digest ON blobs (app_name, digest);

CREATE INDEX blobs_unused ON blobs (touched_at, place) WHERE state <> 'used';

CREATE TABLE blob_data (
    place    TEXT PRIMARY KEY,
    app_name TEXT NOT NULL,
    data     BLOB NOT NULL
);

CREATE TABLE blob_uses (
    place    TEXT NOT NULL,
    owner    TEXT NOT NULL,
    app_name TEXT NOT NULL,
    PRIMARY KEY (place, owner)
);

CREATE INDEX blob_uses_of_owner ON blob_uses (owner);

CREATE TABLE publications (
    session_id       TEXT PRIMARY KEY,
    turn_index       INTEGER NOT NULL,
    agent_session_id TEXT NOT NULL,
    home             TEXT NOT NULL,
    workspace        TEXT,
    published_at     INTEGER NOT NULL
);

CREATE TABLE login_codes (
    hash     BLOB PRIMARY KEY,
    app_name TEXT NOT NULL,
    token_id TEXT NOT NULL,
    ends_at  INTEGER NOT NULL
);

CREATE INDEX sessions_open ON sessions (app_name, listed_as, listed_at, session_id)
    WHERE deleted_at IS NULL AND closed_at IS NULL;

CREATE INDEX sessions_ended ON sessions (app_name, listed_as, listed_at, session_id)
    WHERE deleted_at IS NULL AND closed_at IS NOT NULL;

CREATE INDEX sessions_of_project ON sessions (app_name, project_key, listed_at, session_id)
    WHERE deleted_at IS NULL AND project_key IS NOT NULL;

CREATE INDEX sessions_of_parent ON sessions (app_name, parent_session_id, listed_at, session_id)
    WHERE deleted_at IS NULL AND parent_session_id IS NOT NULL;

CREATE INDEX sessions_idle ON sessions (idle_since)
    WHERE retention = 'ttl' AND closed_at IS NULL AND deleted_at IS NULL;

CREATE TRIGGER sessions_added AFTER INSERT ON sessions BEGIN
    UPDATE sessions SET listed_at = new.updated_at, idle_since = coalesce(new.last_turn_at, new.created_at),
        listed_as = CASE WHEN new.activity IN ('interrupted', 'failed') THEN new.activity ELSE 'idle' END
    WHERE rowid = new.rowid;
END;

CREATE TRIGGER sessions_rested AFTER UPDATE OF updated_at, activity, last_turn_at, created_at ON sessions
WHEN new.activity NOT IN ('queued', 'running', 'waiting') BEGIN
    UPDATE sessions SET listed_at = new.updated_at, idle_since = coalesce(new.last_turn_at, new.created_at),
        listed_as = CASE WHEN new.activity IN ('interrupted', 'failed') THEN new.activity ELSE 'idle' END
    WHERE rowid = new.rowid;
END;

CREATE INDEX turns_queued ON turns (session_id, turn_index) WHERE state = 'queued';

CREATE INDEX messages_in_view ON messages (session_id, seq, role, turn, cut, archived) WHERE cut = 0 AND archived = 0;

CREATE INDEX packs_settled ON packs (session_id, last_seq) WHERE codec <> 2;
