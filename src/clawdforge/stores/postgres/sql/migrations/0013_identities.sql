-- Of a folder that a caller named each server keeps the identity by itself: one of another machine says nothing there.
ALTER TABLE sessions ADD COLUMN identities word NOT NULL DEFAULT '{}';
