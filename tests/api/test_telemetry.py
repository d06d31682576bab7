"""Telemetry of a real server: what a collector is told of turns and metrics, and what a dead one costs."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.api.harness import App, Server, until
from tests.support.receiver import Receiver, receiving
from tests.support.spans import attributes, describe, metrics_of, schemas, spans_of, traceparent

GOLDEN = Path(__file__).parents[1] / "golden" / "telemetry"
DASHBOARD = Path(__file__).parents[2] / "docs" / "reference" / "grafana.json"
UPDATE = os.environ.get("CLAWDFORGE_TEST_UPDATE_GOLDEN") == "1"
CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
SECRET = "told-to-nobody"


@pytest.fixture(scope="module")
def collector() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


def settings_for(collector: Receiver, **more: str) -> dict[str, str]:
    hooks = {"CLAWDFORGE_WEBHOOKS": "true", "CLAWDFORGE_WEBHOOK_HOSTS": collector.host}
    told = {"CLAWDFORGE_OTEL_ENDPOINT": collector.url(""), "CLAWDFORGE_OTEL_METRICS_SECS": "0.2"}
    return {**hooks, **told, "CLAWDFORGE_OTEL_HEADERS": f"authorization=Bearer {SECRET},x-tenant=7", **more}


@pytest.fixture(scope="module")
def told(collector: Receiver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    found = Server(tmp_path_factory.mktemp("told") / "data", settings_for(collector))
    yield found
    found.stop()


def run(app: App, session_id: str, prompt: str, header: str | None = None) -> Any:
    headers = {} if header is None else {"traceparent": header}
    return app.http.post(f"/sessions/{session_id}/turn", json={"prompt": prompt}, headers=headers)


def wait_for(collector: Receiver, session_id: str, turns: int = 1) -> list[Span]:
    def found() -> list[Span] | None:
        spans = spans_of(collector, session_id)
        return spans if sum(span.name.startswith("invoke_agent") for span in spans) >= turns else None

    return until(found, f"{turns} turns at the collector")


def compare(name: str, spans: list[Span], app: App, session_id: str) -> None:
    text = describe(spans, {session_id: "SESSION", app.name: "APP"})
    path = GOLDEN / f"{name}.json"
    if UPDATE:
        path.write_text(text)
    assert text == path.read_text(), "run scripts/golden and read the diff"


def test_a_turn_with_tools_is_one_trace(told: Server, collector: Receiver) -> None:
    app = told.app()
    session_id = app.session(model="scripted-2")
    failed = {"sessionUpdate": "tool_call", "toolCallId": "7", "title": "rm -rf /all", "status": "failed"}
    script = f"tool read\ntool search_docs\nupdate {json.dumps(failed)}\nusage 10 20 5\necho done"
    assert run(app, session_id, script, CALLER).status_code == 200
    spans = wait_for(collector, session_id)
    compare("completed", spans, app, session_id)
    assert {span.trace_id.hex() for span in spans} == {CALLER[3:35]}
    assert spans[0].parent_span_id.hex() == CALLER[36:52]
    assert schemas(collector) == {"https://opentelemetry.io/schemas/1.41.0"}
    (got, *_) = collector.of("/v1/traces")
    assert (got.headers["authorization"], got.headers["x-tenant"]) == (f"Bearer {SECRET}", "7")


def test_a_cancelled_turn_is_no_error_and_neither_is_its_tool(told: Server, collector: Receiver) -> None:
    app = told.app()
    session_id = app.session()
    assert app.http.post(f"/sessions/{session_id}/turns", json={"prompt": "tool fetch 60000"}).is_success
    until(lambda: "tool_update" in app.http.get(f"/sessions/{session_id}/events").text, "the tool's start")
    assert app.http.post(f"/sessions/{session_id}/cancel", json={}).json()["cancelled"] == 1
    compare("cancelled", wait_for(collector, session_id), app, session_id)


def test_a_failed_turn_says_by_a_word_of_ours_what_went_wrong(told: Server, collector: Receiver) -> None:
    app = told.app()
    session_id = app.session()
    assert run(app, session_id, "echo half\nerror the key sk-12345 is wrong").status_code == 502
    spans = wait_for(collector, session_id)
    compare("failed", spans, app, session_id)
    assert not any(b"sk-12345" in one.body for one in collector.of("/v1/traces"))


def test_a_turn_that_a_crash_cut_off_is_closed_as_such_and_its_retry_is_below_it(
    collector: Receiver, tmp_path: Path
) -> None:
    server = Server(tmp_path / "data", settings_for(collector))
    try:
        app = server.app("crashed")
        session_id = app.session(on_interrupt="continue")
        prompt = {"prompt": "meta\ntool read\ntool edit 60000"}
        where = f"/sessions/{session_id}/turns"
        assert app.http.post(where, json=prompt, headers={"traceparent": CALLER}).is_success
        events = f"/sessions/{session_id}/events"
        until(lambda: app.http.get(events).text.count('"in_progress"') >= 2, "the second tool")
        page = app.http.get(events, params={"limit": 1000}).json()["events"]
        server.stop(signal.SIGKILL)
        assert spans_of(collector, session_id) == []
        server.start()
        spans = wait_for(collector, session_id, 2)
    finally:
        server.stop()
    (text,) = [event["content"] for event in page if event["type"] == "text"]
    assert json.loads(text) == {"traceparent": traceparent(spans[0])}, "what the agent was told is closed"
    ids = [span.span_id for span in spans]
    assert len(ids) == len(set(ids))
    compare("interrupted", spans, app, session_id)


@pytest.mark.parametrize(
    "header",
    [
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        f"{CALLER}-more",
        CALLER.upper(),
        CALLER[:-1],
        "' OR 1=1 --",
        "x" * 5000,
        "",
    ],
)
def test_a_forged_traceparent_is_as_good_as_none(told: Server, collector: Receiver, header: str) -> None:
    app = told.app()
    session_id = app.session()
    assert run(app, session_id, "echo hi", header).status_code == 200
    (span,) = wait_for(collector, session_id)
    assert (span.parent_span_id, span.trace_id.hex() == CALLER[3:35]) == (b"", False)


def test_two_headers_and_a_later_version(told: Server, collector: Receiver) -> None:
    app = told.app()
    twice, later = app.session(), app.session()
    headers = [("traceparent", CALLER), ("traceparent", CALLER)]
    where = f"/sessions/{twice}/turn"
    assert app.http.post(where, json={"prompt": "echo hi"}, headers=headers).status_code == 200
    assert run(app, later, "echo hi", f"cc{CALLER[2:]}-what-comes-later").status_code == 200
    assert wait_for(collector, twice)[0].parent_span_id == b""
    assert wait_for(collector, later)[0].parent_span_id.hex() == CALLER[36:52]


def test_agents_and_webhooks_are_told_which_span_they_are_below(told: Server, collector: Receiver) -> None:
    app = told.app()
    assert app.http.post("/webhooks", json={"url": collector.url("/traced")}).is_success
    session_id = app.session()
    reply = run(app, session_id, "meta", CALLER).json()
    (span,) = wait_for(collector, session_id)
    (said,) = [event["content"] for event in reply["events"] if event.get("type") == "text"]
    assert json.loads(said) == {"traceparent": traceparent(span)}
    (hook,) = until(lambda: collector.of("/traced"), "the webhook")
    assert hook.headers["traceparent"] == traceparent(span)


def test_nothing_that_was_said_is_told_until_it_is_wanted(
    told: Server, collector: Receiver, start: Callable[..., Server]
) -> None:
    prompt = "tool execute\necho the-answer-of-mine\nthink of-the-prompt"
    app = told.app()
    session_id = app.session()
    assert run(app, session_id, prompt).status_code == 200
    wait_for(collector, session_id)
    sent = b"".join(one.body for one in collector.of("/v1/traces"))
    assert (b"answer-of-mine" in sent, b"of-the-prompt" in sent, b"execute done" in sent) == (False,) * 3
    with receiving() as other:
        server = start(OTEL_ENDPOINT=other.url("/base"), OTEL_CONTENT="true")
        app = server.app()
        session_id = app.session()
        assert run(app, session_id, prompt).status_code == 200
        until(lambda: other.of("/base/v1/traces"), "the spans")
        sent = other.of("/base/v1/traces")[0].body
    assert all(word in sent for word in (b"the-answer-of-mine", b"of-the-prompt", b"execute done"))


def test_the_collector_gets_the_values_that_metrics_shows(told: Server, collector: Receiver) -> None:
    app = told.app()
    assert run(app, app.session(), "echo hi").status_code == 200
    until(lambda: collector.of("/v1/metrics"), "a reading")
    shown = {
        name.removeprefix("clawdforge_").removesuffix("_total")
        for name in re.findall(r"^# TYPE (\S+)", told.admin().get("/metrics").text, re.MULTILINE)
    }
    found = metrics_of(collector)
    assert {name.removeprefix("clawdforge.") for name in found} == shown
    times = found["clawdforge.commit_seconds"].histogram.data_points[0]
    assert sum(times.bucket_counts) == times.count > 0
    assert len(times.bucket_counts) == len(times.explicit_bounds) + 1
    ended = {
        point.attributes[0].value.string_value: point.as_int or point.as_double
        for point in found["clawdforge.turns_ended"].sum.data_points
    }
    assert ended["completed"] >= 1


@pytest.mark.parametrize("how", ["refuses", "hangs", "errs"])
def test_a_dead_collector_costs_a_counter_and_nothing_else(start: Callable[..., Server], how: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, receiving() as receiver:
        receiver.answers = [b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n"] * 1000
        port = receiver.port if how == "errs" else listener.getsockname()[1]
        if how == "refuses":
            listener.close()
        server = start(OTEL_ENDPOINT=f"http://127.0.0.1:{port}", OTEL_METRICS_SECS="0.2")
        app = server.app()
        session_id = app.session()
        began = time.monotonic()
        for _ in range(3):
            assert run(app, session_id, "tool read\necho hi").status_code == 200
        assert time.monotonic() - began < 12, "who waited for a collector that hangs would take 15 s"
        lost = re.compile(r'telemetry_total\{of="span",outcome="(?:failed|dropped)"\} [1-9]')
        until(lambda: lost.search(server.admin().get("/metrics").text), "a count of what is lost")
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < 20
        assert server.log_text.count("telemetry does not arrive") == 1
        assert "Traceback" not in server.log_text


def test_what_ends_with_the_server_is_still_told(start: Callable[..., Server]) -> None:
    with receiving() as collector:
        server = start(OTEL_ENDPOINT=collector.url(""), STOP_GRACE_SECS="0.1")
        app = server.app()
        session_id = app.session()
        assert app.http.post(f"/sessions/{session_id}/turns", json={"prompt": "sleep 60"}).is_success
        until(lambda: app.http.get(f"/sessions/{session_id}").json()["turn_count"] == 1, "the turn's start")
        assert server.stop() == 0
        (span,) = spans_of(collector, session_id)
    assert attributes(span)["clawdforge.turn.outcome"] == "interrupted"


def test_without_a_collector_nothing_of_the_extra_is_imported() -> None:
    code = "import sys, clawdforge.server; print([n for n in sys.modules if n.startswith('opentelemetry')])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = ran.stdout
    for name in ("opentelemetry.sdk", "opentelemetry.exporter", "opentelemetry.proto", "google.protobuf"):
        assert name not in found


def test_a_server_without_the_extra_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['opentelemetry.sdk'] = None; from clawdforge.cli import main;"
        f"main(['serve', '--port', '0', '--data-dir', {str(tmp_path / 'data')!r}])"
    )
    env = {**os.environ, "CLAWDFORGE_OTEL_ENDPOINT": "http://127.0.0.1:4318"}
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=60, check=False
    )
    assert ran.returncode == 1
    assert "pip install 'clawdforge[otel]'" in ran.stderr


def test_every_metric_of_the_dashboard_exists(server: Server) -> None:
    shown = set(re.findall(r"^(clawdforge_\w+)", server.admin().get("/metrics").text, re.MULTILINE))
    shown |= set(re.findall(r"^# TYPE (\S+)", server.admin().get("/metrics").text, re.MULTILINE))
    dashboard = json.loads(DASHBOARD.read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    named = {name for line in asked for name in re.findall(r"clawdforge_\w+", line)}
    assert len(named) > 10
    assert named - shown == set()
