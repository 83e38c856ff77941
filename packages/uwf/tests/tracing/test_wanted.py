"""What the variables of OpenTelemetry ask for."""

import pytest

from uwf.tracing._wanted import NotUsable, Wanted, wanted_by

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, None),
        ({ENDPOINT: ""}, None),
        ({ENDPOINT: "http://c"}, Wanted("otlp", "otlp", contents=False)),
        (
            {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c"},
            Wanted("otlp", "none", contents=False),
        ),
        ({"OTEL_TRACES_EXPORTER": "console"}, Wanted("console", "none", contents=False)),
        ({ENDPOINT: "http://c", "OTEL_SDK_DISABLED": "TRUE"}, None),
        (
            {ENDPOINT: "http://c", "OTEL_METRICS_EXPORTER": "none"},
            Wanted("otlp", "none", contents=False),
        ),
        (
            {ENDPOINT: "x", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true"},
            Wanted("otlp", "otlp", contents=True),
        ),
        (
            {ENDPOINT: "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"},
            Wanted("otlp", "otlp", contents=False),
        ),
    ],
)  # fmt: skip
def test_only_what_is_asked_for_is_sent(environment: dict[str, str], wanted: Wanted | None) -> None:
    assert wanted_by(environment) == wanted


@pytest.mark.parametrize(
    ("name", "value"),
    [("OTEL_TRACES_EXPORTER", "zipkin"), ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc")],
)
def test_what_can_t_be_done_names_the_variable_and_what_can(name: str, value: str) -> None:
    with pytest.raises(NotUsable, match=f"{name} is '{value}'; use"):
        wanted_by({ENDPOINT: "http://c", name: value})
