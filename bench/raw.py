"""A plain ASGI program that sends the same frames to every reader: what uvicorn alone can do.

    python -m bench.raw PORT

`GET /COUNT` is answered with so many frames, as many in one send as our server puts into one on average.
"""

import sys
from collections.abc import Awaitable, Callable
from typing import Any, Final

import uvicorn

TOGETHER: Final = 15
FRAME: Final = (
    b'id: 12345\nevent: text\ndata: {"type":"text","turn":1,"seq":12345,"data":{"content":"1234 "}}\n\n'
)
Send = Callable[[dict[str, Any]], Awaitable[None]]


async def serve(scope: dict[str, Any], _receive: Any, send: Send) -> None:
    if scope["type"] != "http":
        return
    count = int(scope["path"].strip("/") or 0)
    headers = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    while count > 0:
        some = min(count, TOGETHER)
        await send({"type": "http.response.body", "body": FRAME * some, "more_body": True})
        count -= some
    await send({"type": "http.response.body", "body": b""})


if __name__ == "__main__":
    uvicorn.run(serve, host="127.0.0.1", port=int(sys.argv[1]), log_level="error", access_log=False)
