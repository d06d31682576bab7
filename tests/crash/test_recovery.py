"""What a start after a kill does: settles, goes on with the queue, ends orphans, clears away, and no more."""

import contextlib
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from clawdforge.core.rules.interrupted import GO_ON
from tests.api.harness import until
from tests.crash.kit import Forge
from tests.support.folders import files_below

Make = Callable[..., Forge]


@pytest.mark.slow
def test_ten_kills_during_recovery(forge: Make) -> None:
    """Each start is killed a little later than the one before; the eleventh finds everything in order."""
    crash = forge()
    sessions = {policy: crash.session(on_interrupt=policy) for policy in ("hold", "continue", "retry")}
    prompt = "echo half\nhang"
    for session_id in sessions.values():
        crash.turn(session_id, "echo first")
        crash.submit(session_id, prompt)
        crash.seen(session_id, lambda event: event.get("content") == "half", "the half answer")
        crash.submit(session_id, "echo queued")
    crash.kill()
    for round_ in range(10):
        server = crash.spawn()
        until(lambda pid=server.pid: crash.holder() == pid or None, "the lock")  # type: ignore[misc]
        threading.Event().wait(0.004 * round_)  # any moment will do: these are samples, not an order
        server.kill()
        server.wait()
    crash.restart()
    for policy, session_id in sessions.items():
        count = {"hold": 3, "continue": 4, "retry": 4}[policy]
        if policy == "retry":
            until(lambda: crash.handed()[prompt] == 4, "the second try")
            crash.http.post(f"/sessions/{session_id}/cancel", json={})
        turns = [crash.ended(session_id, index) for index in range(1, count + 1)]
        assert [turn["outcome"] for turn in turns[:3]] == ["completed", "interrupted", "completed"]
        crash.check(session_id)
        assert len(crash.turns(session_id)) == count
    assert crash.handed()[prompt] == 4
    assert crash.handed()["echo queued"] == 3


@pytest.mark.slow
def test_the_queue_goes_on_by_itself_with_what_stands_in_first(forge: Make) -> None:
    crash = forge(MAX_LIVE_AGENTS="1")
    session_id, other = crash.session(on_interrupt="continue"), crash.session()
    crash.submit(session_id, "echo half\nhang")
    crash.seen(session_id, lambda event: event.get("content") == "half", "the half answer")
    crash.submit(session_id, "echo second")
    crash.submit(session_id, "echo third")
    crash.submit(other, "echo waits for a place")
    crash.kill()
    crash.restart()
    for index in range(2, 5):
        assert crash.ended(session_id, index)["outcome"] == "completed"
    assert crash.ended(other, 1)["outcome"] == "completed"
    started = [event["turn"] for event in crash.events(session_id) if event["type"] == "turn.started"]
    assert started == [1, 4, 2, 3]
    said = [message["content"] for message in crash.messages(session_id) if message["role"] == "user"]
    assert said == ["echo half\nhang", GO_ON, "echo second", "echo third"]


@pytest.mark.slow
def test_a_stand_in_is_tried_once(forge: Make) -> None:
    crash = forge()
    session_id = crash.session(on_interrupt="retry")
    prompt = "echo half\nhang"
    crash.submit(session_id, prompt)
    for tries in (1, 2):
        until(lambda tries=tries: crash.handed()[prompt] == tries or None, "the prompt")  # type: ignore[misc]
        crash.seen(
            session_id,
            lambda event, tries=tries: event.get("content") == "half" and event["turn"] == tries,  # type: ignore[misc]
            "the half answer",
        )
        crash.kill()
        crash.restart()
    turns = crash.turns(session_id)
    assert [(turn["outcome"], turn["cut"]) for turn in turns] == [
        ("interrupted", True),
        ("interrupted", False),
    ]
    assert crash.handed()[prompt] == 2
    assert [m["content"] for m in crash.messages(session_id)] == [prompt, "half"]
    crash.check(session_id)


def unheard(crash: Forge, session_id: str, prompt: str) -> None:
    """Somebody whose server dies before it has answered."""
    with contextlib.suppress(httpx2.TransportError):
        crash.app.turn(session_id, prompt, if_busy="rollback")


@pytest.mark.slow
def test_a_prompt_that_was_to_make_way_is_not_brought_back(forge: Make) -> None:
    crash = forge(CANCEL_GRACE_SECS="60")
    session_id = crash.session(on_interrupt="retry")
    crash.submit(session_id, "hang-hard")
    crash.seen(session_id, lambda event: event.get("content") == "deaf", "the deaf agent")
    late = threading.Thread(target=unheard, args=(crash, session_id, "echo instead"))
    late.start()
    crash.seen(session_id, lambda event: event.get("if_busy") == "rollback", "the prompt that interrupts")
    crash.kill()
    late.join(1)
    crash.restart()
    assert crash.ended(session_id, 2)["outcome"] == "completed"
    first = crash.turns(session_id)[0]
    assert (first["outcome"], first["cut"]) == ("interrupted", True)
    assert len(crash.turns(session_id)) == 2
    assert [m["content"] for m in crash.messages(session_id)] == ["echo instead", "instead"]


@pytest.mark.slow
def test_readers_see_each_event_once_over_three_restarts(forge: Make) -> None:
    crash = forge()
    session_id = crash.session()
    seen: list[int] = []
    for round_ in range(4):
        crash.submit(session_id, f"chunks 50 8 10\necho round {round_}\nhang")
        cursor = {"Last-Event-ID": str(seen[-1])} if seen else {}
        with crash.app.stream(f"/sessions/{session_id}/events", headers=cursor) as stream:
            for frame in stream:
                seen.append(int(frame.id or 0))
                now = json.loads(frame.data)
                if (
                    now["type"] == "text"
                    and now["turn"] == round_ + 1
                    and f"{20 + round_}." in now["content"]
                ):
                    break
        crash.kill()
        crash.restart()
    with crash.app.stream(
        f"/sessions/{session_id}/events", headers={"Last-Event-ID": str(seen[-1])}
    ) as stream:
        for frame in stream:
            seen.append(int(frame.id or 0))
            if seen[-1] == crash.http.get(f"/sessions/{session_id}").json()["head"]:
                break
    assert seen == list(range(1, len(seen) + 1))
    assert [turn["outcome"] for turn in crash.turns(session_id)] == ["interrupted"] * 4
    crash.check(session_id)
    for turn in range(1, 5):
        events = [event for event in crash.events(session_id) if event["turn"] == turn]
        text = "".join(event["content"] for event in events if event["type"] == "text")
        kept = [
            m["content"] for m in crash.messages(session_id) if m["turn"] == turn and m["role"] == "assistant"
        ]
        assert kept == [text]


@pytest.mark.slow
def test_a_kill_while_a_home_is_copied(forge: Make) -> None:
    crash = forge(MAX_LIVE_AGENTS="5")
    session_id = crash.session(on_interrupt="retry")
    crash.turn(session_id, "echo first")
    home = crash.server.data_dir / "homes" / session_id
    for number in range(3):
        (home / f"large-{number}").write_bytes(os.urandom(24 << 20))
        prompt = f"echo answer {number}"
        crash.submit(session_id, prompt)
        crash.ended(session_id, number + 2)
        crash.kill()
        crash.restart()
        assert crash.turns(session_id)[-1]["outcome"] == "completed"
        assert crash.handed()[prompt] == 1
    assert crash.remembered(session_id) == ["echo first", *(f"echo answer {n}" for n in range(3))]
    crash.check(session_id)


@pytest.mark.slow
def test_an_idle_server_writes_nothing(forge: Make) -> None:
    """S3-23, S3-26: neither beside an open reader nor after a turn or a restart."""
    crash = forge(SWEEP_SECS="0.2", HEARTBEAT_SECS="0.1")
    session_id = crash.session(retention="keep")
    crash.turn(session_id, "tools 2 10")
    crash.kill()
    crash.restart()
    with crash.app.stream(f"/sessions/{session_id}/events") as stream:
        stream.upto("turn.ended")
        until(lambda: crash.server.process.poll() is None, "a living server")
        before = footprint(crash.server.data_dir)
        threading.Event().wait(2.0)
        assert footprint(crash.server.data_dir) == before
    state = crash.http.get(f"/sessions/{session_id}").json()
    assert state["running_turn"] is None


def footprint(folder: Path) -> dict[str, tuple[int, int]]:
    found = [path for path in files_below(folder) if not path.name.endswith("-shm")]
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in found}
