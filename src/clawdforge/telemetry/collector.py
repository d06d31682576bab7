"""Tells a collector of turns and metrics: OTLP over HTTP, from a thread of its own."""

import http.client
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource

from clawdforge.core.clock import Clock, SystemClock
from clawdforge.core.models.metrics import Metric
from clawdforge.core.models.traces import TurnTrace
from clawdforge.telemetry.destination import Destination
from clawdforge.telemetry.pump import LINGER_SECS, Pump
from clawdforge.telemetry.readings import ReadingMaker
from clawdforge.telemetry.spans import SpanMaker

SEND_SECS: Final = 5.0
MAX_ANSWER: Final = 1 << 16
Post = Callable[[str, bytes], bool]
"""Sends a body to a path below the endpoint and says whether it was taken."""


class Collector:
    """The port `Telemetry`."""

    def __init__(
        self, destination: Destination, post: Post, clock: Clock, *, linger: float = LINGER_SECS
    ) -> None:
        named = {
            "service.name": "clawdforge",
            "service.version": destination.version,
            "service.instance.id": destination.node,
        }
        resource = Resource(named)
        self.with_content = destination.with_content
        self._clock = clock
        self._spans = SpanMaker(resource, destination.version, with_content=destination.with_content)
        self._readings = ReadingMaker(resource, destination.version, clock.now())
        self.pump = Pump(
            self._make_spans_sender(post),
            lambda reading: post("/v1/metrics", encode_metrics(reading).SerializeToString()),
            urlsplit(destination.endpoint).hostname or "",
            linger=linger,
        )

    def record(self, trace: TurnTrace) -> None:
        """The spans are made by the thread that sends them: a turn may have a thousand tools."""
        self.pump.offer(trace, 1 + len(trace.tools), _weigh(trace))

    def _make_spans_sender(self, post: Post) -> Callable[[list[TurnTrace]], bool]:
        def send(traces: list[TurnTrace]) -> bool:
            spans = [span for trace in traces for span in self._spans.make(trace)]
            return post("/v1/traces", encode_spans(spans).SerializeToString())

        return send

    def measure(self, metrics: Sequence[Metric]) -> None:
        self.pump.show(self._readings.make(metrics, self._clock.now()))

    def miss(self, turns: int = 1) -> None:
        self.pump.miss(turns)

    def counts(self) -> Mapping[tuple[str, str], int]:
        return self.pump.counts()


def _weigh(trace: TurnTrace) -> int:
    """The bytes of what was said in it, as far as it is kept."""
    turn = trace.turn
    said = (turn.prompt, turn.error, trace.answer)
    done = (text for tool in trace.tools for text in (tool.title, tool.given, tool.got))
    return sum(sys.getsizeof(text) for text in (*said, *done) if text)


def connect(destination: Destination) -> Collector:
    """Nothing is sent before there is something to tell: a collector that is away keeps no server waiting.

    Its pump is to be stopped at the end.
    """
    collector = Collector(destination, make_post(destination), SystemClock())
    collector.pump.start()
    return collector


def make_post(destination: Destination) -> Post:
    """A connection for each batch: they are few, and none that has gone bad is used again."""
    place = urlsplit(destination.endpoint)
    base, host, port = place.path.rstrip("/"), place.hostname or "", place.port
    kind = http.client.HTTPSConnection if place.scheme == "https" else http.client.HTTPConnection
    headers = {"content-type": "application/x-protobuf", **destination.headers}

    def post(path: str, body: bytes) -> bool:
        connection: http.client.HTTPConnection = kind(host, port, timeout=SEND_SECS)
        try:
            connection.request("POST", base + path, body, headers)
            answer = connection.getresponse()
            answer.read(MAX_ANSWER)
            return 200 <= answer.status < 300
        finally:
            connection.close()

    return post
