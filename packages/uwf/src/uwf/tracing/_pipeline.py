"""The SDK of OpenTelemetry as the environment says. Imported only where something is traced."""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
import time
from collections.abc import Callable

from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    ConsoleMetricExporter,
    MetricExporter,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter

from uwf.tracing._wanted import Exporter, Wanted
from workflow_otel import OtelObserver

MAX_WAIT_S = 5.0
"""How long the command may wait at its end for what is still to be sent, ..."""
WAIT_AFTER_PROBLEM_S = 1.0
"""... and how long once something has gone wrong: an exporter tries again for 10 s."""

_LOGGERS = ("opentelemetry", "urllib3")
_UNCONNECTED = re.compile(r"host='([^']+)', port=(\d+).*\[Errno -?\d+\] ([^\"')]+)", re.DOTALL)


class Pipeline:
    """An observer, the providers that take what it makes, and what was logged of sending it.

    The providers become the global ones, so that what tools trace themselves is sent too. Where
    the process has an SDK already, as under `opentelemetry-instrument`, that one is used.
    """

    def __init__(self, wanted: Wanted) -> None:
        self._closing: list[Callable[[], object]] = []
        self._problems = _Problems()
        self.complaint = ""
        """What the SDK said of the variables, if it can't read one; it goes on without."""
        if isinstance(trace.get_tracer_provider(), TracerProvider):
            self.observer = OtelObserver(contents=wanted.contents)
            return
        for name in _LOGGERS:  # else each try is a line on the screen, or a traceback
            logger = logging.getLogger(name)
            logger.addHandler(self._problems)
            logger.propagate = False
        resource = _resource()
        traces, meters = trace.NoOpTracerProvider(), metrics.NoOpMeterProvider()
        if wanted.traces != "none":
            traces = TracerProvider(resource=resource, shutdown_on_exit=False)
            traces.add_span_processor(BatchSpanProcessor(_span_exporter(wanted.traces)))
            trace.set_tracer_provider(traces)
            self._closing.append(traces.shutdown)
        if wanted.metrics != "none":
            reader = PeriodicExportingMetricReader(_metric_exporter(wanted.metrics))
            meters = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
            metrics.set_meter_provider(meters)
            self._closing.append(meters.shutdown)
        self.observer = OtelObserver(
            contents=wanted.contents, tracer_provider=traces, meter_provider=meters
        )
        self.complaint, self._problems.first = self._problems.first, ""

    def close(self) -> str:
        """Send what is left, within a bounded time; give the first thing that went wrong."""
        threads = [threading.Thread(target=each, daemon=True) for each in self._closing]
        for thread in threads:
            thread.start()
        began_s = time.monotonic()
        for thread in threads:
            while thread.is_alive() and not self._is_late(began_s):
                thread.join(0.02)
        if any(thread.is_alive() for thread in threads) and not self._problems.first:
            return f"the collector took longer than {MAX_WAIT_S:g} s"
        return self._problems.first

    def _is_late(self, began_s: float) -> bool:
        waited_s = time.monotonic() - began_s
        return waited_s > (WAIT_AFTER_PROBLEM_S if self._problems.first else MAX_WAIT_S)


class _Problems(logging.Handler):
    """Keeps the first warning, as one line."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.first = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Take a record."""
        error = record.exc_info[1] if record.exc_info else None
        words = record.getMessage() if error is None else f"{record.getMessage()} {error}"
        self.first = self.first or _in_short(words)


def _in_short(message: str) -> str:
    """What an exporter logged, as one line; of a connection the place and the system's words."""
    if (found := _UNCONNECTED.search(message)) is not None:
        host, port, words = found.groups()
        return f"{host}:{port}: {words}"
    return " ".join(message.split())[:300]


def _resource() -> Resource:
    """Who sends. A name in the environment counts, which `Resource.create` would override."""
    named = "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    if named or os.environ.get("OTEL_SERVICE_NAME"):
        return Resource.create()
    return Resource.create({"service.name": "uwf"})


def _span_exporter(kind: Exporter) -> SpanExporter:
    return OTLPSpanExporter() if kind == "otlp" else ConsoleSpanExporter(out=sys.stderr)


def _metric_exporter(kind: Exporter) -> MetricExporter:
    return OTLPMetricExporter() if kind == "otlp" else ConsoleMetricExporter(out=sys.stderr)
