"""How long model calls take, and how many tokens."""

from __future__ import annotations

from opentelemetry.metrics import MeterProvider, get_meter

from workflow_otel._conventions import (
    DURATION,
    DURATION_BOUNDS_S,
    ERROR_TYPE,
    SCOPE,
    SEMCONV_SCHEMA_URL,
    TOKEN_BOUNDS,
    TOKEN_TYPE,
    TOKEN_USAGE,
    Value,
    attributes,
)
from workflow_protocol import Usage


class ModelMetrics:
    """The two metrics of model calls that the conventions ask for."""

    def __init__(self, provider: MeterProvider | None) -> None:
        meter = get_meter(SCOPE, meter_provider=provider, schema_url=SEMCONV_SCHEMA_URL)
        self._tokens = meter.create_histogram(
            TOKEN_USAGE,
            unit="{token}",
            description="Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=TOKEN_BOUNDS,
        )
        self._duration = meter.create_histogram(
            DURATION,
            unit="s",
            description="GenAI operation duration.",
            explicit_bucket_boundaries_advisory=DURATION_BOUNDS_S,
        )

    def count_tokens(self, usage: Usage, call: dict[str, Value]) -> None:
        """Count what a call took, if the provider said so."""
        if not is_known(usage):
            return
        for kind, tokens in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            self._tokens.record(tokens, attributes({**call, TOKEN_TYPE: kind}))

    def count_call(self, elapsed_ms: int, call: dict[str, Value], *, error: str = "") -> None:
        """Count a call that ended, and how long it took with its retries."""
        self._duration.record(elapsed_ms / 1000, attributes({**call, ERROR_TYPE: error}))


def is_known(usage: Usage) -> bool:
    """Whether the provider said what the call took."""
    return usage.calls > usage.unknown_calls
