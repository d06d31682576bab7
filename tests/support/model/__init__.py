"""A scripted model endpoint: real agents run against it offline, steered by the text of the prompt."""
