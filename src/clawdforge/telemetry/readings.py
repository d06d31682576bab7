"""Makes what a collector is told of metrics, from the values that `/metrics` shows."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from clawdforge.core.histogram import Sample
from clawdforge.core.models.metrics import Metric as OwnMetric
from clawdforge.wire.base import Micros

PREFIX: Final = "clawdforge."
BOUND: Final = "le"


class ReadingMaker:
    """Makes readings in the name of one server, which counts since `began`."""

    def __init__(self, resource: Resource, version: str, began: Micros) -> None:
        self._resource = resource
        self._scope = InstrumentationScope("clawdforge", version)
        self._began = began * 1000

    def make(self, metrics: Sequence[OwnMetric], at: Micros) -> MetricsData:
        made = [self._make(metric, at * 1000) for metric in metrics]
        scope = ScopeMetrics(scope=self._scope, metrics=made, schema_url="")
        resource = ResourceMetrics(resource=self._resource, scope_metrics=[scope], schema_url="")
        return MetricsData(resource_metrics=[resource])

    def _make(self, metric: OwnMetric, at: int) -> Metric:
        name = PREFIX + metric.name.removesuffix("_total")
        unit = "s" if name.endswith("_seconds") else "By" if name.endswith("_bytes") else "1"
        return Metric(name=name, description=metric.about, unit=unit, data=self._make_data(metric, at))

    def _make_data(self, metric: OwnMetric, at: int) -> Any:
        total = AggregationTemporality.CUMULATIVE
        if metric.kind == "histogram":
            return Histogram([self._make_classes(metric.samples, at)], total)
        points = [
            NumberDataPoint(
                attributes=dict(sample.labels),
                start_time_unix_nano=self._began,
                time_unix_nano=at,
                value=int(sample.value) if isinstance(sample.value, bool) else sample.value,
            )
            for sample in metric.samples
        ]
        return Gauge(points) if metric.kind == "gauge" else Sum(points, total, is_monotonic=True)

    def _make_classes(self, samples: Iterable[Sample], at: int) -> HistogramDataPoint:
        """Ours count all that took no longer; there, each class has its own."""
        found = list(samples)
        classes = [sample for sample in found if sample.suffix == "_bucket"]
        totals = [int(sample.value) for sample in classes]
        ends = {sample.suffix: sample.value for sample in found if BOUND not in sample.labels}
        return HistogramDataPoint(
            attributes={},
            start_time_unix_nano=self._began,
            time_unix_nano=at,
            count=int(ends["_count"]),
            sum=ends["_sum"],
            bucket_counts=[now - before for now, before in zip(totals, [0, *totals], strict=False)],
            explicit_bounds=[float(sample.labels[BOUND]) for sample in classes[:-1]],
            min=None,  # type: ignore[arg-type]  # it may be left out, as it is here
            max=None,  # type: ignore[arg-type]
        )
