"""Transcripts that other programs wrote, as messages of ours: pure readers."""
