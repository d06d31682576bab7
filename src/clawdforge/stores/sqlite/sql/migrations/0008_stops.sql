-- What the operator has paused: everything (both empty), an app, an agent, or one app's use of one agent.
CREATE TABLE pauses (
    app_name  TEXT NOT NULL DEFAULT '',
    agent     TEXT NOT NULL DEFAULT '',
    reason    TEXT,
    paused_at INTEGER NOT NULL,
    PRIMARY KEY (app_name, agent)
) WITHOUT ROWID;
