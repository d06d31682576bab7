"""The commands: one module for those that belong together, imported when one of them is called."""
