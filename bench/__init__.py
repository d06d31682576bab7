"""Benchmarks: commands that print figures. None of them is a test."""

import os

# What they start is measured as an installation has it. Where Python is told to write no compiled files, as
# in many images, every start compiled all that it imports: as long again as the start itself.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
