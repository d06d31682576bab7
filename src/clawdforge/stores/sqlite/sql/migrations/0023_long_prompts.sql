-- A row is written anew, with all that is in it, whenever one of its columns changes, and a turn's row changes when it
-- starts and when it ends. So a long prompt stands beside it, and is written once; an empty blob in its place says so.
-- What was stored before stays where it is.
CREATE TABLE long_prompts (
    session_id TEXT NOT NULL,
    turn_index INTEGER NOT NULL,
    prompt     TEXT NOT NULL,
    PRIMARY KEY (session_id, turn_index)
);
CREATE TRIGGER turns_reworded AFTER UPDATE OF prompt ON turns
WHEN typeof(new.prompt) = 'text' AND (typeof(old.prompt) = 'blob' OR length(CAST(new.prompt AS BLOB)) > 16384) BEGIN
    DELETE FROM long_prompts WHERE session_id = new.session_id AND turn_index = new.turn_index;
    INSERT INTO long_prompts
    SELECT new.session_id, new.turn_index, new.prompt WHERE length(CAST(new.prompt AS BLOB)) > 16384;
    UPDATE turns SET prompt = x''
    WHERE session_id = new.session_id AND turn_index = new.turn_index AND length(CAST(prompt AS BLOB)) > 16384;
END;
CREATE TRIGGER turns_removed_long AFTER DELETE ON turns WHEN typeof(old.prompt) = 'blob' BEGIN
    DELETE FROM long_prompts WHERE session_id = old.session_id AND turn_index = old.turn_index;
END;
