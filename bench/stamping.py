"""An ACP agent whose chunks say when they were written: `stamps N MS`, as the peers' agents do it."""

import json
import sys
import time
from collections.abc import Mapping
from typing import Any


def send(message: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        return {"protocolVersion": 1, "agentCapabilities": {}}
    if method == "session/new":
        return {"sessionId": "stamping"}
    if method == "session/prompt":
        _, *numbers = params["prompt"][-1]["text"].split()
        count, pause = map(int, numbers) if len(numbers) == 2 else (1, 0)
        for _ in range(count):
            time.sleep(pause / 1000)
            content = {"type": "text", "text": f"<{time.monotonic_ns()}>"}
            update = {"sessionUpdate": "agent_message_chunk", "content": content}
            send({"method": "session/update", "params": {"sessionId": "stamping", "update": update}})
        return {"stopReason": "end_turn"}
    return {}


if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked and "method" in asked:
            send({"id": asked["id"], "result": answer(asked["method"], asked["params"])})
