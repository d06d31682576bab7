"""Folders of agents: homes and their copies, credentials, attachments, workspaces and their snapshots."""
