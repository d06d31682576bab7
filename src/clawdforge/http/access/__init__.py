"""Who may ask for what: credentials, logins, trust, scopes of an agent's own token, shares."""
