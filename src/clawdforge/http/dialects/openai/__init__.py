"""The OpenAI dialect, `/v1/…`: agents and personas as models, each conversation in a session that is kept."""
