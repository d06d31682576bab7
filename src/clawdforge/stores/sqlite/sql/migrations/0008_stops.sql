-- What the operator has paused: everything (both empty), an app, an agent, or one app's use of one agent.
CREATE TABLE pauses (
    app_name  TEXT NOT NULL DEFAULT '',
    agent     TEXT NOT NULL DEFAULT '',
    reason    TEXT,
    paused_at INTEGER NOT NULL,
    PRIMARY KEY (app_name, agent)
) WITHOUT ROWID;

-- What a turn may use, as its prompt said, and the limit that ended it, if one did.
ALTER TABLE turns ADD COLUMN limits TEXT NOT NULL DEFAULT '{}';
ALTER TABLE turns ADD COLUMN stopped_by TEXT;
