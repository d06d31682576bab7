-- What an agent sent is kept in the compact form from now on. Events that are there already stay as they are.
ALTER TABLE events ADD COLUMN compact INTEGER NOT NULL DEFAULT 0;
