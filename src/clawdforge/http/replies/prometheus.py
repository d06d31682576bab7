"""Renders metrics in the text format of Prometheus."""

from collections.abc import Iterable
from typing import Final

from clawdforge.core.histogram import Sample
from clawdforge.core.models.metrics import Metric

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
PREFIX: Final = "clawdforge_"


def render(metrics: Iterable[Metric]) -> str:
    lines: list[str] = []
    for metric in metrics:
        name = PREFIX + metric.name
        lines += (f"# HELP {name} {metric.about}", f"# TYPE {name} {metric.kind}")
        lines += (
            f"{name}{sample.suffix}{_labels(sample)} {_number(sample.value)}" for sample in metric.samples
        )
    return "\n".join(lines) + "\n"


def _labels(sample: Sample) -> str:
    pairs = ",".join(f'{name}="{_escape(value)}"' for name, value in sample.labels.items())
    return f"{{{pairs}}}" if pairs else ""


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
