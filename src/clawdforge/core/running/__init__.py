"""What runs: workers, live agents and their places, the turn in progress, and coming back after a crash."""
