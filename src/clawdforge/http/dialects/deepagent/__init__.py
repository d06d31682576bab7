"""The deepagent dialect, `/api/sessions…`: sessions that are kept, messages stored before they run."""
