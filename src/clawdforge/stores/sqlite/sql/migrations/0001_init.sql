-- The first schema. Times are microseconds since the epoch; JSON is TEXT; flags are 0 or 1.

CREATE TABLE apps (
    app_name            TEXT PRIMARY KEY,
    created_at          INTEGER NOT NULL,
    max_sessions        INTEGER,
    max_turns_in_flight INTEGER,
    max_bytes           INTEGER
) WITHOUT ROWID;

CREATE TABLE tokens (
    token_id   TEXT PRIMARY KEY,
    app_name   TEXT NOT NULL,
    hash       BLOB NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    note       TEXT,
    expires_at INTEGER,
    revoked_at INTEGER
);
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
);
CREATE INDEX sessions_listed ON sessions (app_name, updated_at, session_id) WHERE deleted_at IS NULL;
CREATE INDEX sessions_open ON sessions (app_name, updated_at, session_id)
    WHERE deleted_at IS NULL AND closed_at IS NULL;
CREATE INDEX sessions_of_project ON sessions (app_name, project_key, updated_at, session_id)
    WHERE deleted_at IS NULL AND project_key IS NOT NULL;
CREATE INDEX sessions_of_parent ON sessions (app_name, parent_session_id, updated_at, session_id)
    WHERE deleted_at IS NULL AND parent_session_id IS NOT NULL;
CREATE INDEX sessions_capped ON sessions (app_name)
    WHERE retention = 'ttl' AND closed_at IS NULL AND deleted_at IS NULL;
CREATE INDEX sessions_idle ON sessions (coalesce(last_turn_at, created_at))
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
    usage        TEXT,
    PRIMARY KEY (session_id, turn_index)
);
CREATE UNIQUE INDEX turns_one_active ON turns (session_id) WHERE state IN ('running', 'waiting');
CREATE UNIQUE INDEX turns_key ON turns (session_id, key) WHERE key IS NOT NULL;
CREATE INDEX turns_unsettled ON turns (session_id, turn_index) WHERE state <> 'ended';

-- Which turns name an upload: kept by the triggers below, asked by the sweeper.
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

-- With a rowid: beside a WITHOUT ROWID table it was half the size for events of 1 to 4 kB, and a third cheaper.
CREATE TABLE events (
    session_id TEXT NOT NULL,
    seq        INTEGER NOT NULL,
    turn       INTEGER,
    type       TEXT NOT NULL,
    by_agent   INTEGER NOT NULL,
    data       BLOB NOT NULL,
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
    truncated   INTEGER NOT NULL DEFAULT 0,
    UNIQUE (session_id, seq)
);
CREATE INDEX messages_visible ON messages (session_id, seq) WHERE cut = 0 AND archived = 0;
CREATE INDEX messages_by_role ON messages (session_id, role, seq) WHERE cut = 0 AND archived = 0;
CREATE INDEX messages_said ON messages (session_id, seq) WHERE cut = 0 AND archived = 0 AND turn > 0;
CREATE INDEX messages_cut ON messages (session_id, seq) WHERE cut = 1;

-- Each app's messages have ids in a range of their own (number << 40), so that a search walks only its app's.
CREATE TABLE message_ranges (
    number   INTEGER PRIMARY KEY,
    app_name TEXT NOT NULL UNIQUE
);

-- The index sees the beginning of a message: one endless answer must not stop every writer.
CREATE VIEW message_texts AS SELECT id, substr(content, 1, 100000) AS content FROM messages;
CREATE VIRTUAL TABLE messages_fts USING fts5 (
    content, content = 'message_texts', content_rowid = 'id',
    tokenize = 'unicode61 remove_diacritics 2', prefix = '3 4 5'
);
CREATE TRIGGER messages_added AFTER INSERT ON messages BEGIN
    UPDATE sessions SET
        last_message = max(last_message, new.seq),
        message_count = message_count + (new.cut = 0 AND new.archived = 0)
    WHERE session_id = new.session_id;
    INSERT INTO messages_fts (rowid, content)
    SELECT new.id, substr(new.content, 1, 100000) WHERE new.cut = 0 AND new.archived = 0;
END;
CREATE TRIGGER messages_removed AFTER DELETE ON messages WHEN old.cut = 0 AND old.archived = 0 BEGIN
    UPDATE sessions SET message_count = message_count - 1 WHERE session_id = old.session_id;
    INSERT INTO messages_fts (messages_fts, rowid, content)
    VALUES ('delete', old.id, substr(old.content, 1, 100000));
END;
CREATE TRIGGER messages_changed AFTER UPDATE OF content, cut, archived ON messages
WHEN old.content <> new.content OR old.cut <> new.cut OR old.archived <> new.archived BEGIN
    UPDATE sessions SET message_count = message_count
        + (new.cut = 0 AND new.archived = 0) - (old.cut = 0 AND old.archived = 0)
    WHERE session_id = new.session_id;
    INSERT INTO messages_fts (messages_fts, rowid, content)
    SELECT 'delete', old.id, substr(old.content, 1, 100000) WHERE old.cut = 0 AND old.archived = 0;
    INSERT INTO messages_fts (rowid, content)
    SELECT new.id, substr(new.content, 1, 100000) WHERE new.cut = 0 AND new.archived = 0;
END;

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
);
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

-- The audit ledger: numbered over all apps without gaps, chained by hash; nothing here is ever changed.
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
