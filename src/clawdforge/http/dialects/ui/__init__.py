"""Streams for pages that others build: a turn as AG-UI's events, or as Vercel's UI message stream."""
