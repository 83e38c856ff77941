"""Traces and metrics of threads by OpenTelemetry's conventions for generative AI."""

from workflow_otel._conventions import SEMCONV_SCHEMA_URL, SEMCONV_VERSION
from workflow_otel._observer import OtelObserver

__all__ = ["SEMCONV_SCHEMA_URL", "SEMCONV_VERSION", "OtelObserver"]
