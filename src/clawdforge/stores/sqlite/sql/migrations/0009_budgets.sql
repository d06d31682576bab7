-- What may be spent by an app, a token or a session (scope_id is empty for the app). Money is in micro-dollars.
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

-- What became of a budget in one period: reported by agents, estimated by us, held by turns that have not ended.
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

-- What one turn holds of one purse. A one-shot run has the turn 0; its holder is the run.
CREATE TABLE reservations (
    app_name   TEXT NOT NULL,
    holder_id  TEXT NOT NULL,
    turn_index INTEGER NOT NULL,
    budget_id  TEXT NOT NULL,
    starts_at  INTEGER NOT NULL,
    tokens     INTEGER NOT NULL DEFAULT 0,
    cost       INTEGER NOT NULL DEFAULT 0,
    asks       INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (app_name, holder_id, turn_index, budget_id)
) WITHOUT ROWID;
CREATE INDEX reservations_of_purse ON reservations (app_name, budget_id, starts_at);

-- The token whose call made the turn, so that its budget is asked.
ALTER TABLE turns ADD COLUMN token_id TEXT;
