"""What people and scripts are shown: events as lines, answers, tables, colours, progress."""
