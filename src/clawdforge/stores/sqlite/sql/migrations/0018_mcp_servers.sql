-- MCP servers that the agents of an app, or of one session, are given: by name, as in wire/mcp.py. Secrets are named
-- there as ${NAME}; their values stand here alone, and no reply, event or export has them.
ALTER TABLE apps ADD COLUMN mcp_servers TEXT NOT NULL DEFAULT '{}';
ALTER TABLE sessions ADD COLUMN mcp_servers TEXT NOT NULL DEFAULT '{}';

CREATE TABLE app_secrets (
    app_name TEXT NOT NULL,
    name     TEXT NOT NULL,
    value    TEXT NOT NULL,
    PRIMARY KEY (app_name, name)
) WITHOUT ROWID;
