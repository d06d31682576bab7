-- The trace of its caller that a turn is a part of, as the header `traceparent` says it.
ALTER TABLE turns ADD COLUMN traceparent word;
