"""Telemetry by OpenTelemetry: what a collector is told of turns and metrics. Needs the extra `otel`."""
