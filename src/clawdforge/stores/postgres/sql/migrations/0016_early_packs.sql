-- A file that is moved here may have packs of single commits (2), which versions before this one cannot read. The last
-- pack of another kind is found without a look at them.
CREATE INDEX packs_settled ON packs (session_id, last_seq) WHERE codec <> 2;
