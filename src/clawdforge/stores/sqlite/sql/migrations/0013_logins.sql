-- How often all logins of a holder were ended at once; a cookie says in which round it was made. The holder is the
-- id of a token, or `operator`.
CREATE TABLE login_rounds (
    holder TEXT PRIMARY KEY,
    round  INTEGER NOT NULL
) WITHOUT ROWID;
