"""Live events through bad connections: each once, in order, and a clear end when there is no way on."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from clawdforge import AsyncForge, Event, Forge, Reconnect, StreamBroken
from clawdforge.client._stream import Cursor, Gap
from clawdforge.client.errors import SessionNotFound, Unauthenticated
from clawdforge.wire.sse import HEARTBEAT, Frame, encode
from tests.unit.client_stub import DROP, Answer, Asked, serving

WORDS = ["one ", "two ", "three ", "four"]


def event(seq: int, kind: str, turn: int | None = 2, **fields: Any) -> bytes:
    body = {"seq": seq, "ts": "2026-01-01T00:00:00.000000Z", "turn": turn, "type": kind, **fields}
    return json.dumps(body).encode()


LOG = [
    event(1, "session.created", None),
    event(2, "turn.queued", 1),
    event(3, "turn.queued", 2, prompt="go"),
    event(4, "turn.ended", 1, outcome="completed"),
    event(5, "turn.started", 2),
    *(event(6 + n, "text", content=word) for n, word in enumerate(WORDS)),
    event(10, "session.changed", None),
    event(11, "response", result={"stopReason": "end_turn"}),
    event(
        12,
        "turn.ended",
        outcome="completed",
        stop_reason="end_turn",
        duration_ms=9,
        usage={"input_tokens": 3},
    ),
    event(13, "turn.queued", 3),
]


def frames(after: int, upto: int) -> bytes:
    lines = enumerate(LOG[after:upto], after + 1)
    return b"".join(encode(data, event="x", id=str(seq)) for seq, data in lines)


def flaky(*pieces: Callable[[int], Answer], replayed: bool = False) -> Callable[[Asked], Answer]:
    """A server whose event streams end as told, one by one; each is a function of the cursor."""
    left = list(pieces)

    def script(asked: Asked) -> Answer:
        if asked.line == "POST /sessions/s/turns":
            accepted = {"session_id": "s", "turn_index": 2, "state": "queued", "if_busy": "queue", "head": 3}
            return Answer({**accepted, "replayed": replayed}, 202)
        assert asked.headers["accept"] == "text/event-stream"
        return left.pop(0)(int(asked.query["after"][0]))

    return script


def upto(end: int, *, cut: int = 0, again: int = 0) -> Callable[[int], Answer]:
    """A stream up to an event; `cut` bytes of it are lost, `again` repeats events that were seen."""

    def answer(after: int) -> Answer:
        data = HEARTBEAT + frames(max(0, after - again), end)
        data = data[: len(data) - cut]
        return Answer(chunks=tuple(data[at : at + 50] for at in range(0, len(data), 50)))

    return answer


def refuse(status: int, code: str) -> Callable[[int], Answer]:
    return lambda _: Answer({"detail": "no", "code": code}, status)


def lose(_: int) -> Answer:
    return DROP


BAD_ROAD = (upto(4), lose, upto(7, cut=9), refuse(503, "stopping"), upto(9, again=5), upto(13, again=2))


def test_a_turn_is_streamed_whole_over_a_bad_road() -> None:
    with serving(flaky(*BAD_ROAD)) as stub, Forge(stub.url, "t") as forge:
        with forge.attach("s").stream("go") as stream:
            seen = list(stream)
        assert [each.seq for each in seen] == [3, 5, 6, 7, 8, 9, 11, 12]
        assert all(isinstance(each, Event) and each.turn == 2 for each in seen)
        result = stream.result()
        assert result.text() == "".join(WORDS)
        assert (result.ok, result.outcome, result.stop_reason) == (True, "completed", "end_turn")
        assert (result.turn_index, result.duration_ms) == (2, 9)
        assert result.usage is not None
        assert result.usage.input_tokens == 3
        assert [each["type"] for each in result.events] == ["text"] * 4 + ["response"]
        cursors = [int(asked.query["after"][0]) for asked in stub.asked[1:]]
        assert cursors == [2, 4, 4, 6, 6, 9]


def check_story(told: list[Reconnect]) -> None:
    """What was told of the bad road: every end but the last, and each stream that brought something."""
    assert [(news.is_back, news.attempt) for news in told] == [
        *((False, 1), (False, 2), (True, 2)),  # it ended after 4, then nobody was there
        *((False, 1), (False, 2), (True, 2)),  # it was cut after 7, then refused
        *((False, 1), (True, 1)),
    ]
    assert "stream" in told[0].why
    assert told[1].why != told[0].why
    assert all(news.away_secs >= 0 for news in told)


def test_whoever_wants_to_is_told_of_each_attempt_and_of_the_way_back() -> None:
    told: list[Reconnect] = []
    with (
        serving(flaky(*BAD_ROAD)) as stub,
        Forge(stub.url, "t", on_reconnect=told.append) as forge,
        forge.attach("s").stream("go") as stream,
    ):
        assert list(stream.text()) == WORDS
    check_story(told)


async def test_a_function_that_awaits_is_told_too() -> None:
    told: list[Reconnect] = []

    async def note(news: Reconnect) -> None:
        told.append(news)

    with serving(flaky(*BAD_ROAD)) as stub:
        async with AsyncForge(stub.url, "t") as forge:
            telling = forge.with_options(on_reconnect=note)
            async with telling.attach("s").stream("go") as stream:
                assert [each async for each in stream.text()] == WORDS
    check_story(told)


def test_what_the_agent_said_is_asked_for_in_the_compact_form() -> None:
    def script(asked: Asked) -> Answer:
        if asked.line == "GET /sessions/s/events" and asked.headers["accept"] != "text/event-stream":
            return Answer({"ok": True, "events": [], "next": 13})
        return Answer({"ok": True}) if asked.line == "POST /sessions/s/turn" else upto(13)(0)

    with serving(script) as stub, Forge(stub.url, "t") as forge:
        session = forge.attach("s")
        session.turn("go")
        assert list(session.events(after=13)) == []
        assert next(iter(session.follow())).seq == 1
        assert [asked.query.get("form") for asked in stub.asked] == [["compact"]] * 3


async def test_the_awaiting_client_streams_over_the_same_road() -> None:
    with serving(flaky(*BAD_ROAD)) as stub:
        async with AsyncForge(stub.url, "t") as forge, forge.attach("s").stream("go") as stream:
            assert [each async for each in stream.text()] == WORDS
            assert (await stream.result()).text() == "".join(WORDS)


def test_result_reads_on_to_the_end_and_text_gives_only_words() -> None:
    with serving(flaky(upto(13), upto(13))) as stub, Forge(stub.url, "t") as forge:
        with forge.attach("s").stream("go") as stream:
            assert next(stream).type == "turn.queued"
            assert stream.result().text() == "".join(WORDS)
        with forge.attach("s").stream("go") as stream:
            assert list(stream.text()) == WORDS


def test_a_turn_that_was_accepted_before_is_read_from_the_beginning() -> None:
    with serving(flaky(upto(13), replayed=True)) as stub, Forge(stub.url, "t") as forge:
        with forge.attach("s").stream("go", idempotency_key="k") as stream:
            assert [each.seq for each in stream] == [3, 5, 6, 7, 8, 9, 11, 12]
        assert stub.asked[1].query["after"] == ["0"]


def test_leaving_early_sends_no_cancel() -> None:
    with serving(flaky(upto(13))) as stub, Forge(stub.url, "t") as forge:
        with forge.attach("s").stream("go") as stream:
            next(stream)
        assert [asked.method for asked in stub.asked] == ["POST", "GET"]
        assert next(stream, None) is None


def test_follow_gives_the_log_without_end_and_stops_when_the_token_is_gone() -> None:
    pieces = (upto(5), upto(13), refuse(401, "unauthenticated"))
    with serving(flaky(*pieces)) as stub, Forge(stub.url, "t") as forge:
        live = forge.attach("s").follow(after=1)
        assert [next(live).seq for _ in range(12)] == list(range(2, 14))
        with pytest.raises(Unauthenticated):
            next(live)


def test_a_server_that_does_not_come_back_breaks_the_stream() -> None:
    script = flaky(upto(5), *[lose] * 50)
    with serving(script) as stub, Forge(stub.url, "t", reconnect_secs=0.3) as forge:
        live = forge.attach("s").follow()
        assert [next(live).seq for _ in range(5)] == [1, 2, 3, 4, 5]
        with pytest.raises(StreamBroken) as broken:
            next(live)
        assert broken.value.last_seq == 5


def test_a_session_that_is_gone_is_told_at_once() -> None:
    with serving(flaky(refuse(404, "session_not_found"))) as stub, Forge(stub.url, "t") as forge:
        with pytest.raises(SessionNotFound):
            next(forge.attach("s").follow())
        assert len(stub.asked) == 1


def test_the_log_is_paged() -> None:
    def script(asked: Asked) -> Answer:
        after = int(asked.query["after"][0])
        page = [json.loads(data) for data in LOG[after : after + 5]]
        return Answer({"ok": True, "events": page, "next": min(after + 5, len(LOG))})

    with serving(script) as stub, Forge(stub.url, "t") as forge:
        assert [each.seq for each in forge.attach("s").events(after=2)] == list(range(3, 14))
        assert [asked.query["after"] for asked in stub.asked] == [["2"], ["7"], ["12"], ["13"]]


def frame(seq: int) -> Frame:
    return Frame("x", event(seq, "text").decode(), str(seq))


def test_the_cursor_refuses_gaps_and_repeats() -> None:
    cursor = Cursor(4, patience_secs=1)
    assert cursor.accept(frame(4)) is None
    assert cursor.accept(Frame("x", "junk", "")) is None
    found = cursor.accept(frame(5))
    assert found is not None
    assert found.seq == 5
    with pytest.raises(Gap):
        cursor.accept(frame(7))
    assert cursor.last_seq == 5
    with pytest.raises(StreamBroken, match="missing"):
        cursor.accept(frame(7))


def test_the_cursor_gives_up_only_after_silence() -> None:
    now = 0.0
    cursor = Cursor(0, patience_secs=10, clock=lambda: now)
    pauses = []
    for _ in range(8):
        pauses.append(cursor.pause("lost"))
        now += 1
    assert pauses[0] < 0.11
    assert max(pauses) <= 2.0
    cursor.note_life()
    now += 100
    assert cursor.pause("lost") > 0
    now += 10
    with pytest.raises(StreamBroken, match="lost"):
        cursor.pause("lost")
