"""What a server answers that stops while somebody waits."""

import concurrent.futures
import signal
from collections.abc import Callable

from tests.api.harness import Server, until


def test_who_waits_for_a_queued_turn_is_told_that_the_server_stops(start: Callable[..., Server]) -> None:
    server = start(STOP_GRACE_SECS="0.1")
    app = server.app()
    session_id = app.session()
    path = f"/sessions/{session_id}/turn"
    with (
        concurrent.futures.ThreadPoolExecutor(1) as pool,
        app.stream(path, "POST", json={"prompt": "hang-hard"}) as stream,
    ):
        stream.upto("text")
        waiting = pool.submit(app.http.post, path, json={"prompt": "echo later"})
        until(lambda: app.http.get(f"/sessions/{session_id}").json()["queued_turns"] == 1, "the queued turn")
        server.process.send_signal(signal.SIGTERM)
        reply = waiting.result(60)
        assert (reply.status_code, reply.json()["code"]) == (503, "stopping")
        assert server.process.wait(60) == 0
