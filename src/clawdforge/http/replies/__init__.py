"""Makes what is sent: streams, pieces of long replies, a transcript as a page, metrics."""
