"""What the usual endpoints can do, by host and model, from their documentation."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple
from urllib.parse import urlsplit

from workflow_reactor._profile import Profile


class _Known(NamedTuple):
    host: str
    """With its port, where that tells one server from another on the same machine."""
    model_prefixes: tuple[str, ...]
    profile: Profile


# Each entry says what differs from `Profile()`, with the page that says so. The first one whose
# host and prefix fit is used. Not here, since `Profile()` is right for them or no URL tells them:
# OpenRouter (https://openrouter.ai/docs/api-reference/parameters; what a model lacks is ignored),
# vLLM (named, required and none: https://docs.vllm.ai/en/latest/features/tool_calling/) and
# llama.cpp, which takes a named tool_choice for `auto`. `uwf doctor --write` finds those out.
_OPENAI = Profile(
    strict_schemas=True, union_at_root=False, max_tokens_field="max_completion_tokens"
)
_GROQ = Profile(union_at_root=False, max_tokens_field="max_completion_tokens")
_ANY = ("",)
_KNOWN = (
    # https://platform.openai.com/docs/api-reference/chat/create: `stop` is "not supported with
    # latest reasoning models"; `max_tokens` is deprecated.
    # https://platform.openai.com/docs/guides/structured-outputs: GPT-4o and later; no root anyOf.
    _Known("api.openai.com", ("o1", "o3", "o4", "gpt-5"), replace(_OPENAI, stop=False)),
    _Known(
        "api.openai.com",
        ("gpt-3.5", "gpt-4-"),
        replace(_OPENAI, response_format="json_object", strict_schemas=False),
    ),
    _Known("api.openai.com", _ANY, _OPENAI),
    # https://platform.claude.com/docs/en/cli-sdks-libraries/libraries/openai-sdk: `strict` and
    # `response_format` are ignored. Of tool_choice it says nothing, and the newest models refuse
    # to be forced (https://github.com/vercel/ai/releases/tag/@ai-sdk%2Fanthropic@4.0.94).
    _Known("api.anthropic.com", _ANY, Profile(response_format="none", forced_tool_choice="none")),
    # https://ai.google.dev/gemini-api/docs/openai for the endpoint; tools with $ref are refused:
    # https://github.com/google-gemini/gemini-cli/issues/13326
    _Known("generativelanguage.googleapis.com", _ANY, Profile(refs=False, union_at_root=False)),
    # https://api-docs.deepseek.com/api/create-chat-completion: text or json_object; named choice.
    # https://api-docs.deepseek.com/guides/thinking_mode: reasoning goes back with tool calls.
    _Known("api.deepseek.com", _ANY, Profile(response_format="json_object")),
    # https://docs.mistral.ai/api: json_schema; `any` or `required`, and a named tool. Fields that
    # it doesn't know are an error, reasoning that comes back is one:
    # https://github.com/charmbracelet/crush/issues/1590, .../BerriAI/litellm/issues/30835
    _Known("api.mistral.ai", _ANY, Profile(echo_reasoning=False, union_at_root=False)),
    # https://console.groq.com/docs/structured-outputs: strict for gpt-oss (all keys required, no
    # open objects), schemas for few others. https://console.groq.com/docs/api-reference:
    # `max_tokens` is deprecated.
    _Known("api.groq.com", ("openai/gpt-oss",), _GROQ),
    _Known("api.groq.com", _ANY, replace(_GROQ, response_format="json_object")),
    # https://docs.ollama.com/api/openai-compatibility: no tool_choice.
    _Known("localhost:11434", _ANY, Profile(forced_tool_choice="none")),
    _Known("127.0.0.1:11434", _ANY, Profile(forced_tool_choice="none")),
    _Known("ollama.com", _ANY, Profile(forced_tool_choice="none")),
)


def profile_for(base_url: str, model: str) -> Profile:
    """Say what an endpoint can do, by its host and model; an unknown one is like OpenAI's API.

    It is what the providers' documentation says. `uwf doctor` asks the endpoint itself.
    """
    parts = urlsplit(base_url)
    hosts = {parts.hostname, parts.netloc.rpartition("@")[2].lower()}
    for known in _KNOWN:
        if known.host in hosts and model.startswith(known.model_prefixes):
            return known.profile
    return Profile()
