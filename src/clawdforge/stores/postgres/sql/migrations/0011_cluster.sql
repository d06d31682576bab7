-- What each server tells of itself with its beats: what runs there, and digests of the settings that all should share.
ALTER TABLE members ADD COLUMN tells word NOT NULL DEFAULT '{}';
-- Codes that log a browser in once, at whichever server it comes to.
CREATE TABLE login_codes (
    hash     bytea PRIMARY KEY,
    app_name word NOT NULL,
    token_id word NOT NULL,
    ends_at  bigint NOT NULL
);
