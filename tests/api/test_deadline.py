"""Every request has a time limit, but for those that wait for a turn, and streams."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.harness import App, Server


@pytest.fixture
def made(tmp_path: Path) -> Iterator[tuple[App, str]]:
    """An app and a session that were made before the server has its short limit.

    So what a test waits for is the only thing that can take too long.
    """
    patient = Server(tmp_path / "data")
    try:
        before = patient.app()
        session_id = before.session()
    finally:
        patient.stop()
    settings = {"REQUEST_TIMEOUT_SECS": "1", "CANCEL_GRACE_SECS": "3600", "SWEEP_SECS": "3600"}
    hasty = Server(tmp_path / "data", {f"CLAWDFORGE_{name}": value for name, value in settings.items()})
    try:
        yield App(before.name, before.token, before.token_id, hasty.client(before.token)), session_id
    finally:
        hasty.stop(signal.SIGKILL)  # it would wait for the agent that does not listen


def test_a_request_that_takes_too_long_is_given_up(made: tuple[App, str]) -> None:
    """A cancel, for example, waits for an agent that does not listen."""
    app, session_id = made
    with app.stream(f"/sessions/{session_id}/turn", "POST", json={"prompt": "hang-hard"}) as stream:
        next(frame for frame in stream if frame.event == "text")
        reply = app.http.post(f"/sessions/{session_id}/cancel", json={})
        assert (reply.status_code, reply.json()["code"]) == (504, "request_timed_out")


def test_a_turn_and_a_stream_take_as_long_as_they_take(made: tuple[App, str]) -> None:
    app, session_id = made
    reply = app.turn(session_id, "sleep 2\necho done")
    assert reply.status_code == 200, reply.text
    with app.stream(f"/sessions/{session_id}/turn", "POST", json={"prompt": "sleep 2\necho more"}) as stream:
        assert stream.upto("turn.ended")
