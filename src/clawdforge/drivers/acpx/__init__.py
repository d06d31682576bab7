"""Agents through the acpx command line: one command for each turn, in the namespace of its session."""
