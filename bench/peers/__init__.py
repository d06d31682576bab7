"""Other servers for agents, each with an agent that only sleeps and speaks: no model and no network."""
