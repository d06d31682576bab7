-- What a token may do, and when it was last used. Tokens that were made before may do everything.
ALTER TABLE tokens ADD COLUMN scopes TEXT NOT NULL DEFAULT '["read","prompt","decide","admin"]';
ALTER TABLE tokens ADD COLUMN last_used_at INTEGER;
