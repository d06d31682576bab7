-- What one app may have of the server at one time; null is the server's own setting.

ALTER TABLE apps ADD COLUMN max_requests_per_sec INTEGER;
ALTER TABLE apps ADD COLUMN max_open_requests INTEGER;
ALTER TABLE apps ADD COLUMN max_readers INTEGER;
