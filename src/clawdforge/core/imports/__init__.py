"""Reads transcripts that other programs wrote, without any I/O."""
