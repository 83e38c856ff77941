"""The usual places where models are: base URLs and the environment variables of their keys."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """Where a provider's models are. Which models it has, it says itself."""

    name: str
    """What it is called in `workflow.yaml`, if not otherwise said."""
    title: str
    """What people call the provider."""
    base_url: str | None = None
    """`None` for the embedded model, which is started here."""
    key_variable: str | None = None
    """The environment variable that usually holds the key; `None` where none is needed."""
    keys_url: str | None = None
    """Where a person gets a key."""
    is_local: bool = False
    """Whether the server is one that runs on this machine, usually without a key."""
    start: str = ""
    """How such a server is started."""


# Each base URL and variable is from the page above it. A server on this machine may want a key that
# it was started with, which `--api-key-env` names.
_PRESETS = (
    # https://platform.openai.com/docs/api-reference/introduction
    Preset(
        name="openai",
        title="OpenAI",
        base_url="https://api.openai.com/v1",
        key_variable="OPENAI_API_KEY",
        keys_url="https://platform.openai.com/api-keys",
    ),
    # https://platform.claude.com/docs/en/cli-sdks-libraries/libraries/openai-sdk
    Preset(
        name="anthropic",
        title="Anthropic (its OpenAI-compatible endpoint)",
        base_url="https://api.anthropic.com/v1",
        key_variable="ANTHROPIC_API_KEY",
        keys_url="https://platform.claude.com/settings/keys",
    ),
    # https://ai.google.dev/gemini-api/docs/openai
    Preset(
        name="google",
        title="Google Gemini (its OpenAI-compatible endpoint)",
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        key_variable="GEMINI_API_KEY",
        keys_url="https://aistudio.google.com/apikey",
    ),
    # https://openrouter.ai/docs/quickstart
    Preset(
        name="openrouter",
        title="OpenRouter",
        base_url="https://openrouter.ai/api/v1",
        key_variable="OPENROUTER_API_KEY",
        keys_url="https://openrouter.ai/keys",
    ),
    # https://console.groq.com/docs/openai
    Preset(
        name="groq",
        title="Groq",
        base_url="https://api.groq.com/openai/v1",
        key_variable="GROQ_API_KEY",
        keys_url="https://console.groq.com/keys",
    ),
    # https://docs.mistral.ai/api
    Preset(
        name="mistral",
        title="Mistral",
        base_url="https://api.mistral.ai/v1",
        key_variable="MISTRAL_API_KEY",
        keys_url="https://console.mistral.ai/api-keys",
    ),
    # https://api-docs.deepseek.com
    Preset(
        name="deepseek",
        title="DeepSeek",
        base_url="https://api.deepseek.com",
        key_variable="DEEPSEEK_API_KEY",
        keys_url="https://platform.deepseek.com/api_keys",
    ),
    # https://docs.together.ai/docs/inference/openai-compatibility
    Preset(
        name="together",
        title="Together AI",
        base_url="https://api.together.ai/v1",
        key_variable="TOGETHER_API_KEY",
        keys_url="https://api.together.ai/settings/api-keys",
    ),
    # https://docs.fireworks.ai/tools-sdks/openai-compatibility
    Preset(
        name="fireworks",
        title="Fireworks AI",
        base_url="https://api.fireworks.ai/inference/v1",
        key_variable="FIREWORKS_API_KEY",
        keys_url="https://fireworks.ai/account/api-keys",
    ),
    # https://docs.x.ai/docs/api-reference
    Preset(
        name="xai",
        title="xAI",
        base_url="https://api.x.ai/v1",
        key_variable="XAI_API_KEY",
        keys_url="https://console.x.ai",
    ),
    # https://docs.ollama.com/api/openai-compatibility
    Preset(
        name="ollama",
        title="Ollama on this machine",
        base_url="http://localhost:11434/v1",
        is_local=True,
        start="ollama serve",
    ),
    # https://lmstudio.ai/docs/developer/openai-compat
    Preset(
        name="lmstudio",
        title="LM Studio on this machine",
        base_url="http://localhost:1234/v1",
        is_local=True,
        start="lms server start",
    ),
    # https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html
    Preset(
        name="vllm",
        title="vLLM on this machine",
        base_url="http://localhost:8000/v1",
        is_local=True,
        start="vllm serve MODEL",
    ),
    # https://github.com/ggml-org/llama.cpp/tree/master/tools/server
    Preset(
        name="llamacpp",
        title="llama.cpp on this machine",
        base_url="http://localhost:8080/v1",
        is_local=True,
        start="llama-server -m FILE.gguf --jinja",
    ),
    Preset(name="local", title="the embedded model, without an account", is_local=True),
)

PRESETS: Mapping[str, Preset] = {each.name: each for each in _PRESETS}
"""By name, those with an account first."""
