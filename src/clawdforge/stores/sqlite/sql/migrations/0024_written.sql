-- How many events the holder of a session has written under its present claim. It moves in the transaction that writes
-- them, so that a write whose outcome is unknown is tried again without looking for its events in the log.
ALTER TABLE sessions ADD COLUMN written INTEGER NOT NULL DEFAULT 0;
