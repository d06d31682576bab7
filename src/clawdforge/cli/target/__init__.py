"""Which server, session and project a command means, and how it is reached."""
