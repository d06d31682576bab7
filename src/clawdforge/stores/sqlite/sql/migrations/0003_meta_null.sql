-- A session that was made without meta shows null. Until now it was stored as an empty object.
UPDATE sessions SET meta = 'null' WHERE meta = '{}';
