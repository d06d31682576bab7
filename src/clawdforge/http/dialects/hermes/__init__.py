"""The hermes dialect, `/api/session…` and `/api/chat…`: one session at a time, prompts that are streamed."""
