"""What the variables of OpenTelemetry ask for. It imports nothing of OpenTelemetry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Exporter = Literal["otlp", "console", "none"]

_KNOWN: tuple[Exporter, ...] = ("otlp", "console", "none")
_PROTOCOL = "http/protobuf"
_CONTENTS = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_YES = {"true", "1", "span_only", "span_and_event"}


class NotUsable(ValueError):
    """A variable asks for what the command has not; the words say which, and what there is."""


class Wanted(NamedTuple):
    """Where traces and metrics go, and whether they hold what was said."""

    traces: Exporter
    metrics: Exporter
    contents: bool


def wanted_by(environment: Mapping[str, str]) -> Wanted | None:
    """Read the variables; `None` where nothing is asked for.

    Raises:
        NotUsable: something is that can't be done.
    """
    if _value(environment, "OTEL_SDK_DISABLED") == "true":
        return None
    traces, metrics = _exporter(environment, "TRACES"), _exporter(environment, "METRICS")
    if traces == "none" and metrics == "none":
        return None
    contents = _value(environment, _CONTENTS) in _YES
    return Wanted(traces, metrics, contents)


def _exporter(environment: Mapping[str, str], signal: str) -> Exporter:
    """Only what is asked for: the exporter's own default is a collector on this machine."""
    name = f"OTEL_{signal}_EXPORTER"
    endpoints = ("OTEL_EXPORTER_OTLP_ENDPOINT", f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")
    has_endpoint = any(_value(environment, each) for each in endpoints)
    asked = _value(environment, name) or ("otlp" if has_endpoint else "none")
    if asked not in _KNOWN:
        raise NotUsable(f"{name} is {asked!r}; use one of {', '.join(_KNOWN)}")
    if asked == "otlp":
        _check_protocol(environment, signal)
    return asked


def _check_protocol(environment: Mapping[str, str], signal: str) -> None:
    for name in (f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        protocol = _value(environment, name)
        if protocol and protocol != _PROTOCOL:
            raise NotUsable(
                f"{name} is {protocol!r}; use {_PROTOCOL!r}, and the endpoint's port for it "
                "(mostly 4318)"
            )
        if protocol:
            return


def _value(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name, "").strip().lower()
