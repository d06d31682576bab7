"""The thread that sends to a collector is bounded in all it does; what is told has the standard's names."""

import threading
import time
from dataclasses import replace
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.semconv._incubating.attributes import error_attributes, gen_ai_attributes
from opentelemetry.semconv.schemas import Schemas

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.rows import TurnRow
from clawdforge.core.models.traces import ToolTrace, TurnTrace
from clawdforge.telemetry.collector import Collector
from clawdforge.telemetry.destination import Destination
from clawdforge.telemetry.pump import BATCH, BATCH_BYTES, MOST_BYTES, MOST_SPANS, Pump
from clawdforge.telemetry.spans import SCHEMA, SpanMaker
from clawdforge.wire.turn import Outcome, TurnState

SECRET = "my-secret"


def a_trace(**fields: Any) -> TurnTrace:
    turn = TurnRow(
        session_id="s", turn_index=1, state=TurnState.ENDED, prompt=SECRET, queued_at=1_000_000,
        started_at=3_000_000, ended_at=5_000_000, outcome=Outcome.FAILED, error=SECRET, code="agent_failed",
        error_extra={"stderr": SECRET}, key=SECRET, token_id=SECRET,
        usage={"input_tokens": 3, "cached_tokens": 4},
    )  # fmt: skip
    tool = ToolTrace(number=1, call_id="c", name="read", kind="read", status=None, started_at=4_000_000)
    return TurnTrace(app="app", agent="demo", model="m", turn=turn, tools=(tool,), **fields)


def test_spans_have_the_names_of_the_conventions_and_no_secrets() -> None:
    turn, tool = SpanMaker(Resource({}), "1", with_content=False).make(a_trace())
    assert SECRET not in turn.to_json() + tool.to_json()
    named = (*vars(gen_ai_attributes).values(), *vars(error_attributes).values())
    known = {name for name in named if isinstance(name, str)}
    whole = SpanMaker(Resource({}), "1", with_content=True).make(a_trace(answer="a"))
    told = {name for span in whole for name in span.attributes or {}}
    assert {name for name in told if not name.startswith("clawdforge.")} - known == set()
    assert SCHEMA in {schema.value for schema in Schemas}
    assert (turn.start_time, turn.end_time, tool.end_time) == (3 * 10**9, 5 * 10**9, 5 * 10**9)
    assert (turn.attributes or {})["gen_ai.usage.input_tokens"] == 7
    assert (turn.attributes or {})["clawdforge.turn.queued_secs"] == 2.0


def test_a_clock_that_was_set_back_makes_no_span_that_ends_before_it_begins() -> None:
    trace = a_trace()
    tool = ToolTrace(number=1, call_id="c", name="read", kind=None, status=None, started_at=9_000_000)
    _, made = SpanMaker(Resource({}), "1", with_content=False).make(
        TurnTrace(app="app", agent="demo", turn=trace.turn, tools=(tool,))
    )
    assert made.end_time == made.start_time


def test_what_a_collector_that_hangs_has_no_room_for_is_dropped_and_counted() -> None:
    hanging, over = threading.Event(), threading.Event()

    def hang(_load: Any) -> bool:
        hanging.set()
        return over.wait(60)

    pump = Pump(hang, hang, "nowhere", linger=0)
    pump.start()
    pump.offer(1, 1, 0)
    assert hanging.wait(10)
    for _ in range(MOST_SPANS // BATCH + 3):
        pump.offer(1, BATCH, 0)
    pump.show("first")
    pump.show("second")
    began = time.monotonic()
    pump.stop(0.2)
    assert time.monotonic() - began < 5
    pump.offer(1, 1, 0)
    assert pump.counts()["span", "dropped"] == 3 * BATCH + 1
    assert pump.counts()["reading", "dropped"] == 1
    over.set()


def test_what_waits_is_bounded_by_its_bytes_and_so_is_what_is_sent_at_once() -> None:
    sent: list[list[TurnTrace]] = []
    collector = Collector(
        Destination(endpoint="http://nowhere", with_content=True, version="1", node="n"),
        lambda _path, _body: True,
        SystemClock(),
        linger=0,
    )

    def send(load: list[TurnTrace]) -> bool:
        sent.append(load)
        return True

    pump = Pump(send, send, "nowhere", linger=0)
    collector.pump = pump
    tools = tuple(replace(a_trace().tools[0], got="\U0001f600" * 16_384, number=at) for at in range(16))
    trace = replace(a_trace(), tools=tools)  # a MiB, at four bytes a character
    for _ in range(100):
        collector.record(trace)
    taken = (
        MOST_BYTES // 2**20 - 1
    )  # what belongs to a text besides its characters takes the last one's place
    assert pump.counts()["span", "dropped"] == (100 - taken) * 17
    pump.start()
    pump.stop(30)
    assert [len(batch) for batch in sent[:-1]] == [BATCH_BYTES // 2**20] * (taken // 4)
    assert pump.counts()["span", "sent"] == taken * 17


def test_a_sender_that_raises_costs_its_batch_and_the_next_one_is_sent() -> None:
    sent: list[Any] = []
    done = threading.Event()

    def send(load: list[int]) -> bool:
        if load[0] < 0:
            raise RuntimeError("whatever")
        sent.extend(load)
        done.set()
        return True

    pump = Pump(send, send, "here", linger=0)
    pump.offer(-1, BATCH, 0)
    pump.offer(1, 1, 0)
    pump.offer(2, 1, 0)
    pump.start()
    pump.stop(10)
    assert sent == [1, 2]
    assert (pump.counts()["span", "failed"], pump.counts()["span", "sent"]) == (BATCH, 2)
