-- Old events of a session lie together in packs: every number from `first_seq` to `last_seq`, compressed.
-- An event is in a row of `events` or in a pack, never in both. `raw_bytes` is what the pack takes when read.
CREATE TABLE packs (
    session_id TEXT NOT NULL,
    first_seq  INTEGER NOT NULL,
    last_seq   INTEGER NOT NULL,
    codec      INTEGER NOT NULL,
    raw_bytes  INTEGER NOT NULL,
    data       BLOB NOT NULL,
    PRIMARY KEY (session_id, last_seq)
);

-- They count as events on the disk, as small as they are there.
CREATE TRIGGER packs_counted AFTER INSERT ON packs BEGIN
    UPDATE session_bytes SET events = events + length(new.data) WHERE session_id = new.session_id;
END;
CREATE TRIGGER packs_uncounted AFTER DELETE ON packs BEGIN
    UPDATE session_bytes SET events = events - length(old.data) WHERE session_id = old.session_id;
END;
