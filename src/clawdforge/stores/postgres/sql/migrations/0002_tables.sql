-- The tables, as those of the SQLite store. Times are microseconds since the epoch; JSON is text; flags are 0 or 1.

CREATE TABLE apps (
    app_name             word PRIMARY KEY,
    created_at           bigint NOT NULL,
    max_sessions         bigint,
    max_turns_in_flight  bigint,
    max_bytes            bigint,
    workspace_roots      word NOT NULL DEFAULT '[]',
    max_requests_per_sec bigint,
    max_open_requests    bigint,
    max_readers          bigint,
    max_agents           bigint,
    mcp_servers          word NOT NULL DEFAULT '{}'
);

CREATE TABLE tokens (
    token_id     word PRIMARY KEY,
    app_name     word NOT NULL,
    hash         bytea NOT NULL UNIQUE,
    created_at   bigint NOT NULL,
    note         word,
    expires_at   bigint,
    revoked_at   bigint,
    scopes       word NOT NULL DEFAULT '["read","prompt","decide","admin"]',
    last_used_at bigint
);
CREATE INDEX tokens_of_app ON tokens (app_name, created_at, token_id);

CREATE TABLE sessions (
    session_id          word PRIMARY KEY,
    app_name            word NOT NULL,
    agent               word NOT NULL,
    cwd                 word NOT NULL,
    created_at          bigint NOT NULL,
    updated_at          bigint NOT NULL,
    last_turn_at        bigint,
    closed_at           bigint,
    deleted_at          bigint,
    model               word,
    persona             word,
    instructions        word,
    own_cwd             bigint NOT NULL DEFAULT 0,
    title               word NOT NULL DEFAULT '',
    meta                word NOT NULL DEFAULT '{}',
    labels              word NOT NULL DEFAULT '[]',
    pinned              bigint NOT NULL DEFAULT 0,
    permission_mode     word NOT NULL DEFAULT 'approve_all',
    on_interrupt        word NOT NULL DEFAULT 'hold',
    retention           word NOT NULL DEFAULT 'ttl',
    plan_mode           bigint NOT NULL DEFAULT 0,
    project_key         word,
    parent_session_id   word,
    forked_from         word,
    depth               bigint NOT NULL DEFAULT 0,
    turn_count          bigint NOT NULL DEFAULT 0,
    last_turn           bigint NOT NULL DEFAULT 0,
    head                bigint NOT NULL DEFAULT 0,
    last_message        bigint NOT NULL DEFAULT 0,
    message_count       bigint NOT NULL DEFAULT 0,
    context             bigint NOT NULL DEFAULT 1,
    context_plan        word NOT NULL DEFAULT 'new',
    agent_session_id    word,
    files_plan          word,
    redo                word NOT NULL DEFAULT '[]',
    holder              word,
    fence               bigint NOT NULL DEFAULT 0,
    total_input_tokens  bigint NOT NULL DEFAULT 0,
    total_output_tokens bigint NOT NULL DEFAULT 0,
    input_tokens        bigint NOT NULL DEFAULT 0,
    output_tokens       bigint NOT NULL DEFAULT 0,
    cached_tokens       bigint NOT NULL DEFAULT 0,
    cost_usd            double precision,
    estimated_cost_usd  double precision,
    workspace_identity  word,
    cut_from            bigint NOT NULL DEFAULT 0,
    cut_to              bigint NOT NULL DEFAULT 0,
    cut_turns           word NOT NULL DEFAULT '[]',
    archived_to         bigint NOT NULL DEFAULT 0,
    activity            word NOT NULL DEFAULT 'idle',
    last_outcome        word,
    forked_after        bigint,
    queue_order         word NOT NULL DEFAULT '[]',
    mcp_servers         word NOT NULL DEFAULT '{}'
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
CREATE INDEX sessions_by_folder ON sessions (cwd, app_name, session_id)
    WHERE closed_at IS NULL AND deleted_at IS NULL;
CREATE INDEX sessions_by_identity ON sessions (workspace_identity, app_name, session_id)
    WHERE closed_at IS NULL AND deleted_at IS NULL AND workspace_identity IS NOT NULL;
CREATE INDEX sessions_unsettled ON sessions (session_id) WHERE cut_from + archived_to > 0;
CREATE INDEX sessions_at_rest ON sessions (app_name, activity, updated_at, session_id)
    WHERE deleted_at IS NULL AND activity IN ('idle', 'interrupted', 'failed');
CREATE INDEX sessions_at_work ON sessions (app_name, activity, session_id)
    WHERE deleted_at IS NULL AND activity IN ('queued', 'running', 'waiting');
CREATE INDEX sessions_of_source ON sessions (app_name, forked_from, forked_after, session_id)
    WHERE deleted_at IS NULL AND forked_from IS NOT NULL;

CREATE TABLE turns (
    session_id   word NOT NULL,
    turn_index   bigint NOT NULL,
    state        word NOT NULL,
    prompt       word NOT NULL,
    queued_at    bigint NOT NULL,
    files        word NOT NULL DEFAULT '[]',
    outcome      word,
    stop_reason  word,
    error        word,
    code         word,
    error_extra  word NOT NULL DEFAULT '{}',
    key          word,
    fingerprint  word,
    retry_of     bigint,
    automatic    bigint NOT NULL DEFAULT 0,
    cut          bigint NOT NULL DEFAULT 0,
    timeout_secs double precision,
    if_busy      word NOT NULL DEFAULT 'queue',
    context      bigint NOT NULL DEFAULT 1,
    started_at   bigint,
    ended_at     bigint,
    first_seq    bigint,
    last_seq     bigint,
    usage        word,
    limits       word NOT NULL DEFAULT '{}',
    stopped_by   word,
    token_id     word,
    parent       bigint,
    PRIMARY KEY (session_id, turn_index)
);
CREATE UNIQUE INDEX turns_one_active ON turns (session_id) WHERE state IN ('running', 'waiting');
CREATE UNIQUE INDEX turns_key ON turns (session_id, key) WHERE key IS NOT NULL;
CREATE INDEX turns_unsettled ON turns (session_id, turn_index) WHERE state <> 'ended';

CREATE TABLE turn_files (
    file_token word NOT NULL,
    session_id word NOT NULL,
    turn_index bigint NOT NULL,
    PRIMARY KEY (file_token, session_id, turn_index)
);

CREATE TABLE events (
    session_id word NOT NULL,
    seq        bigint NOT NULL,
    turn       bigint,
    type       word NOT NULL,
    by_agent   bigint NOT NULL,
    data       bytea NOT NULL,
    compact    bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (session_id, seq)
);

CREATE TABLE messages (
    id          bigint PRIMARY KEY,
    session_id  word NOT NULL,
    seq         bigint NOT NULL,
    role        word NOT NULL,
    content     word NOT NULL,
    ts          bigint NOT NULL,
    turn        bigint,
    thinking    word NOT NULL DEFAULT '',
    tool_calls  word NOT NULL DEFAULT '[]',
    plan        word NOT NULL DEFAULT '[]',
    token_count bigint NOT NULL DEFAULT 0,
    is_summary  bigint NOT NULL DEFAULT 0,
    archived    bigint NOT NULL DEFAULT 0,
    cut         bigint NOT NULL DEFAULT 0,
    pending     bigint NOT NULL DEFAULT 0,
    truncated   bigint NOT NULL DEFAULT 0,
    words       tsvector GENERATED ALWAYS AS (search_index(content)) STORED,
    UNIQUE (session_id, seq)
);
CREATE INDEX messages_by_words ON messages USING gin (words);
CREATE INDEX messages_visible ON messages (session_id, seq) WHERE cut = 0 AND archived = 0;
CREATE INDEX messages_by_role ON messages (session_id, role, seq) WHERE cut = 0 AND archived = 0;
CREATE INDEX messages_cut ON messages (session_id, seq) WHERE cut = 1;
CREATE INDEX messages_said ON messages (session_id, seq, turn, cut, archived)
    WHERE cut = 0 AND archived = 0 AND turn > 0;

CREATE TABLE message_ranges (
    number   bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    app_name word NOT NULL UNIQUE
);

CREATE TABLE permissions (
    permission_id word PRIMARY KEY,
    session_id    word NOT NULL,
    turn_index    bigint NOT NULL,
    tool          word NOT NULL,
    kind          word,
    request       word NOT NULL DEFAULT '{}',
    requested_at  bigint NOT NULL,
    options       word NOT NULL DEFAULT '[]',
    state         word NOT NULL DEFAULT 'pending',
    decision      word,
    option_id     word,
    reason        word,
    decided_at    bigint
);
CREATE INDEX permissions_of_session ON permissions (session_id, requested_at, permission_id);
CREATE INDEX permissions_pending ON permissions (session_id, requested_at, permission_id)
    WHERE state = 'pending';
CREATE INDEX permissions_granted ON permissions (session_id, tool, kind) WHERE decision = 'allow_always';

CREATE TABLE files (
    file_token word PRIMARY KEY,
    app_name   word NOT NULL,
    name       word NOT NULL,
    size       bigint NOT NULL,
    path       word NOT NULL,
    created_at bigint NOT NULL
);
CREATE INDEX files_of_app ON files (app_name, size);
CREATE INDEX files_by_age ON files (created_at, file_token);

CREATE TABLE personas (
    app_name        word NOT NULL,
    name            word NOT NULL,
    agent           word NOT NULL,
    created_at      bigint NOT NULL,
    model           word,
    permission_mode word,
    instructions    word,
    plan_mode       bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (app_name, name)
);

CREATE TABLE session_events (
    number     bigint PRIMARY KEY,
    app_name   word NOT NULL,
    session_id word,
    event      word NOT NULL,
    at         bigint NOT NULL,
    details    word NOT NULL DEFAULT '{}',
    hash       word NOT NULL
);
CREATE INDEX session_events_of_app ON session_events (app_name, number);

CREATE TABLE runs (
    run_id      word PRIMARY KEY,
    app_name    word NOT NULL,
    model       word,
    prompt      word NOT NULL,
    ok          bigint NOT NULL,
    stop_reason word NOT NULL,
    duration_ms bigint NOT NULL,
    created_at  bigint NOT NULL,
    error       word,
    place       bigint GENERATED ALWAYS AS IDENTITY UNIQUE
);
CREATE INDEX runs_of_app ON runs (app_name, created_at);

CREATE TABLE place (
    "only"   bigint PRIMARY KEY CHECK ("only" = 1),
    identity word NOT NULL
);

CREATE TABLE pauses (
    app_name  word NOT NULL DEFAULT '',
    agent     word NOT NULL DEFAULT '',
    reason    word,
    paused_at bigint NOT NULL,
    PRIMARY KEY (app_name, agent)
);

CREATE TABLE budgets (
    budget_id    word PRIMARY KEY,
    app_name     word NOT NULL,
    scope        word NOT NULL,
    scope_id     word NOT NULL DEFAULT '',
    period       word NOT NULL,
    by_operator  bigint NOT NULL DEFAULT 0,
    max_tokens   bigint,
    max_cost     bigint,
    share_tokens bigint NOT NULL DEFAULT 0,
    share_cost   bigint NOT NULL DEFAULT 0,
    warn_at      double precision NOT NULL,
    action       word NOT NULL,
    created_at   bigint NOT NULL
);
CREATE UNIQUE INDEX budgets_of_app ON budgets (app_name, scope, scope_id, period, by_operator);

CREATE TABLE purses (
    app_name         word NOT NULL,
    budget_id        word NOT NULL,
    starts_at        bigint NOT NULL,
    spent_tokens     bigint NOT NULL DEFAULT 0,
    spent_cost       bigint NOT NULL DEFAULT 0,
    estimated_tokens bigint NOT NULL DEFAULT 0,
    estimated_cost   bigint NOT NULL DEFAULT 0,
    reserved_tokens  bigint NOT NULL DEFAULT 0,
    reserved_cost    bigint NOT NULL DEFAULT 0,
    warned_at        bigint,
    PRIMARY KEY (app_name, budget_id, starts_at)
);

CREATE TABLE reservations (
    app_name   word NOT NULL,
    holder_id  word NOT NULL,
    turn_index bigint NOT NULL,
    budget_id  word NOT NULL,
    starts_at  bigint NOT NULL,
    tokens     bigint NOT NULL DEFAULT 0,
    cost       bigint NOT NULL DEFAULT 0,
    asks       bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (app_name, holder_id, turn_index, budget_id)
);
CREATE INDEX reservations_of_purse ON reservations (app_name, budget_id, starts_at);

CREATE TABLE app_bytes (
    app_name    word PRIMARY KEY,
    events      bigint NOT NULL DEFAULT 0,
    messages    bigint NOT NULL DEFAULT 0,
    uploads     bigint NOT NULL DEFAULT 0,
    runs        bigint NOT NULL DEFAULT 0,
    homes       bigint NOT NULL DEFAULT 0,
    home_copies bigint NOT NULL DEFAULT 0,
    snapshots   bigint NOT NULL DEFAULT 0,
    workspaces  bigint NOT NULL DEFAULT 0
);

CREATE TABLE session_bytes (
    session_id  word PRIMARY KEY,
    app_name    word NOT NULL,
    events      bigint NOT NULL DEFAULT 0,
    messages    bigint NOT NULL DEFAULT 0,
    homes       bigint NOT NULL DEFAULT 0,
    home_copies bigint NOT NULL DEFAULT 0,
    snapshots   bigint NOT NULL DEFAULT 0,
    workspaces  bigint NOT NULL DEFAULT 0,
    total       bigint NOT NULL GENERATED ALWAYS AS
        (events + messages + homes + home_copies + snapshots + workspaces) STORED
);
CREATE INDEX session_bytes_by_size ON session_bytes (app_name, total, session_id);

CREATE TABLE audit_base (
    "only" bigint PRIMARY KEY CHECK ("only" = 1),
    number bigint NOT NULL,
    hash   word NOT NULL
);

CREATE TABLE packs (
    session_id word NOT NULL,
    first_seq  bigint NOT NULL,
    last_seq   bigint NOT NULL,
    codec      bigint NOT NULL,
    raw_bytes  bigint NOT NULL,
    data       bytea NOT NULL,
    PRIMARY KEY (session_id, last_seq)
);

CREATE TABLE login_rounds (
    holder word PRIMARY KEY,
    round  bigint NOT NULL
);

CREATE TABLE app_changes (
    session_id    word NOT NULL,
    permission_id word NOT NULL DEFAULT '',
    app_name      word NOT NULL,
    number        bigint NOT NULL,
    at            bigint NOT NULL,
    PRIMARY KEY (session_id, permission_id)
);
CREATE UNIQUE INDEX app_changes_in_order ON app_changes (app_name, number, at);

CREATE TABLE change_counts (
    app_name  word PRIMARY KEY,
    last      bigint NOT NULL DEFAULT 0,
    forgotten bigint NOT NULL DEFAULT 0
);

CREATE TABLE share_links (
    share_id   word PRIMARY KEY,
    app_name   word NOT NULL,
    session_id word NOT NULL,
    hash       bytea NOT NULL UNIQUE,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    up_to_turn bigint NOT NULL,
    last_seq   bigint NOT NULL
);
CREATE INDEX share_links_of_session ON share_links (session_id, created_at, share_id);

CREATE TABLE usage_days (
    app_name         word NOT NULL,
    day              word NOT NULL,
    agent            word NOT NULL,
    model            word NOT NULL,
    turns            bigint NOT NULL,
    input_tokens     bigint NOT NULL,
    output_tokens    bigint NOT NULL,
    cached_tokens    bigint NOT NULL,
    cost_usd         double precision,
    estimated_input  bigint NOT NULL,
    estimated_output bigint NOT NULL,
    estimated_cost   double precision,
    PRIMARY KEY (app_name, day, agent, model)
);

CREATE TABLE app_secrets (
    app_name word NOT NULL,
    name     word NOT NULL,
    value    word NOT NULL,
    PRIMARY KEY (app_name, name)
);

