"""What a collector got of a server: spans and metrics, decoded, and as text that is the same each time."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.support.receiver import Receiver

STATUS = {0: "unset", 1: "ok", 2: "error"}


def read_value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [read_value(one) for one in value.array_value.values]
    return getattr(value, kind) if kind else None


def attributes(span: Span) -> dict[str, Any]:
    return {one.key: read_value(one.value) for one in span.attributes}


def traceparent(span: Span) -> str:
    return f"00-{span.trace_id.hex()}-{span.span_id.hex()}-01"


def _requests(receiver: Receiver) -> Iterable[ExportTraceServiceRequest]:
    return (ExportTraceServiceRequest.FromString(one.body) for one in receiver.of("/v1/traces"))


def spans_of(receiver: Receiver, session_id: str) -> list[Span]:
    """Of one session, as they came."""
    found = [
        span
        for request in _requests(receiver)
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    turns = {span.span_id for span in found if attributes(span).get("gen_ai.conversation.id") == session_id}
    return [span for span in found if turns & {span.span_id, span.parent_span_id}]


def schemas(receiver: Receiver) -> set[str]:
    return {
        scope.schema_url
        for request in _requests(receiver)
        for resource in request.resource_spans
        for scope in resource.scope_spans
    }


def metrics_of(receiver: Receiver) -> dict[str, Any]:
    """The last reading: metrics by name."""
    (got, *_) = reversed(receiver.of("/v1/metrics"))
    request = ExportMetricsServiceRequest.FromString(got.body)
    return {
        metric.name: metric
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


def describe(spans: Iterable[Span], names: Mapping[str, str]) -> str:
    """As JSON: who is below whom, and what each says; `names` stand in place of ids that are made anew."""
    found = list(spans)
    known = {span.span_id: span.name for span in found}
    return json.dumps([_describe(span, known, names) for span in found], indent=1, ensure_ascii=False) + "\n"


def _describe(span: Span, known: Mapping[bytes, str], names: Mapping[str, str]) -> dict[str, Any]:
    assert span.start_time_unix_nano <= span.end_time_unix_nano
    told = attributes(span)
    assert told.pop("clawdforge.turn.queued_secs", 0) >= 0
    above = known.get(span.parent_span_id, "the caller") if span.parent_span_id else None
    words = {key: names.get(str(value), value) for key, value in sorted(told.items())}
    return {
        "name": span.name,
        "below": above,
        "status": f"{STATUS[span.status.code]} {span.status.message}".strip(),
        "attributes": words,
    }
