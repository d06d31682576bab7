"""The conversation: on a terminal with a line to type in, or over a pipe."""
