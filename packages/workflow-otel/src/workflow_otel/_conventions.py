"""The names that OpenTelemetry's conventions give, and our own beside them.

The conventions for generative AI are in development, so their version is fixed here: 1.41.0 is the
last one of the common repository,
https://github.com/open-telemetry/semantic-conventions/blob/v1.41.0/docs/gen-ai/README.md.
They go on in a repository of their own, semantic-conventions-genai, whose first version names the
workflow and the metrics otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

SEMCONV_VERSION: Final = "1.41.0"
"""The version of the semantic conventions that names of spans, attributes and metrics follow."""
SEMCONV_SCHEMA_URL: Final = f"https://opentelemetry.io/schemas/{SEMCONV_VERSION}"
"""The same, as traces and metrics carry it."""

SCOPE: Final = "workflow_otel"

OPERATION: Final = "gen_ai.operation.name"
CONVERSATION: Final = "gen_ai.conversation.id"
WORKFLOW: Final = "gen_ai.workflow.name"
AGENT: Final = "gen_ai.agent.name"
PROVIDER: Final = "gen_ai.provider.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
RESPONSE_MODEL: Final = "gen_ai.response.model"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHED_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
TOKEN_TYPE: Final = "gen_ai.token.type"
TOOL: Final = "gen_ai.tool.name"
TOOL_TYPE: Final = "gen_ai.tool.type"
TOOL_CALL: Final = "gen_ai.tool.call.id"
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_RESULT: Final = "gen_ai.tool.call.result"
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
ERROR_TYPE: Final = "error.type"

TOKEN_USAGE: Final = "gen_ai.client.token.usage"
TOKEN_BOUNDS: Final = (
    1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864,
)  # fmt: skip
DURATION: Final = "gen_ai.client.operation.duration"
DURATION_BOUNDS_S: Final = (
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
)  # fmt: skip

_PROVIDERS: Final = {
    "api.anthropic.com": "anthropic",
    "api.cohere.com": "cohere",
    "api.deepseek.com": "deepseek",
    "api.groq.com": "groq",
    "api.mistral.ai": "mistral_ai",
    "api.openai.com": "openai",
    "api.perplexity.ai": "perplexity",
    "api.x.ai": "x_ai",
    "generativelanguage.googleapis.com": "gcp.gemini",
}
"""The hosts of providers that the conventions have a name for."""

KnownValue = str | bool | int | float | Sequence[str]
Value = KnownValue | None


def provider_name(told: str) -> str:
    """What `gen_ai.provider.name` says: the conventions' own name, where they have one.

    Args:
        told: the name in the configuration, or the host of the endpoint.
    """
    if told.endswith(".openai.azure.com"):
        return "azure.ai.openai"
    return _PROVIDERS.get(told, told)


def attributes(values: Mapping[str, Value]) -> dict[str, KnownValue]:
    """What there is to say: without what is not known, and as text that can be sent.

    A lone surrogate, which a model's JSON may hold, would cost the whole batch of spans.
    """
    known = {name: value for name, value in values.items() if value is not None and value != ""}
    return {name: _sendable(value) for name, value in known.items()}


def _sendable(value: KnownValue) -> KnownValue:
    match value:
        case str():
            return sendable_text(value)
        case bool() | int() | float():
            return value
        case _:
            return [sendable_text(each) for each in value]


def sendable_text(text: str) -> str:
    """Text without lone surrogates."""
    return text.encode("utf-8", "backslashreplace").decode()
