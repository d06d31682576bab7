-- The order that somebody gave to queued turns, by their index; those that are not in it have their usual place.
ALTER TABLE sessions ADD COLUMN queue_order TEXT NOT NULL DEFAULT '[]';

-- The files of a queued turn can be changed.
CREATE TRIGGER turns_refiled AFTER UPDATE OF files ON turns WHEN old.files <> new.files BEGIN
    DELETE FROM turn_files
    WHERE file_token IN (SELECT value FROM json_each(old.files))
      AND session_id = old.session_id AND turn_index = old.turn_index;
    INSERT OR IGNORE INTO turn_files
    SELECT value, new.session_id, new.turn_index FROM json_each(new.files);
END;
