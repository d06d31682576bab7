"""Counting in classes, and the text that Prometheus reads."""

from clawdforge.core.histogram import Histogram, Sample
from clawdforge.core.models.metrics import Metric
from clawdforge.http.replies.prometheus import render


def test_a_histogram_counts_all_that_took_no_longer() -> None:
    times = Histogram([0.1, 0.01])
    for value in (0.001, 0.01, 0.05, 0.1, 7.0):
        times.observe(value)
    *classes, total, count = times.samples()
    assert [(sample.labels["le"], sample.value) for sample in classes] == [
        ("0.01", 2),
        ("0.1", 4),
        ("+Inf", 5),
    ]
    assert (round(total.value, 3), total.suffix) == (7.161, "_sum")
    assert (count.value, count.suffix) == (5, "_count")


def test_the_text_is_what_prometheus_reads() -> None:
    metrics = [
        Metric("turns_total", "counter", "Turns.", (Sample(3, {"outcome": "completed", "odd": 'a"\\\nb'}),)),
        Metric("load", "gauge", "Load.", (Sample(0.25),)),
    ]
    assert render(metrics) == (
        "# HELP clawdforge_turns_total Turns.\n"
        "# TYPE clawdforge_turns_total counter\n"
        'clawdforge_turns_total{outcome="completed",odd="a\\"\\\\\\nb"} 3\n'
        "# HELP clawdforge_load Load.\n"
        "# TYPE clawdforge_load gauge\n"
        "clawdforge_load 0.25\n"
    )
