"""Which requests count as readers of a stream before they are answered."""

import pytest
from starlette.requests import Request

from clawdforge.http.access.share import opens_stream


@pytest.mark.parametrize(
    ("path", "accept", "is_reader"),
    [
        ("/sessions/a/events", "text/event-stream", True),
        ("/sessions/a/events", "application/json", False),
        ("/api/chat/stream", "*/*", True),
        ("/sessions/a/ag-ui", "*/*", True),
        ("/sessions/a/ui", "*/*", True),
        ("/sessions/a/ui/c/stream", "*/*", True),
        ("/v1/chat/completions", "text/event-stream", False),  # its body says
        ("/mcp", "application/json, text/event-stream", False),
    ],
)
def test_what_counts_as_a_reader(path: str, accept: str, is_reader: bool) -> None:
    headers = [(b"host", b"localhost"), (b"accept", accept.encode())]
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers}
    assert opens_stream(Request(scope)) is is_reader
