"""Serves the web page: its files, joined and packed, under a policy that lets nothing else run."""
