"""Models by scene: which provider and model `workflow.yaml` names, and what the endpoint can do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from workflow_reactor import LlmProvider, Profile, Secret, base_url_fault, shown_url
from workflow_register._errors import ConfigError, ConfigFault
from workflow_register._nearest import choices
from workflow_register.config._config import (
    DEFAULT_SCENE,
    OPENAI_KIND,
    REFERENCE,
    Config,
    ProviderConfig,
)

OPENAI_URL, OPENAI_MODEL = "https://api.openai.com/v1", "gpt-4.1-mini"
OPENAI_VARIABLES = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedModel:
    """What a scene resolves to. Nothing of it is secret: the key is still a reference."""

    scene: str
    """What was used: the scene or `provider/model` that was asked for, or `default`."""
    provider_name: str
    kind: str
    model: str | None
    """`None` leaves the choice to the provider; only plug-in kinds have that."""
    provider: ProviderConfig


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


def environment_config(environment: Mapping[str, str]) -> Config:
    """Make a configuration of `OPENAI_API_KEY`, `OPENAI_BASE_URL` and `OPENAI_MODEL`.

    It is empty when neither a key nor a base URL is set. The key stays a reference.

    Raises:
        ConfigError: there is a base URL of another provider than OpenAI and no model, or the base
            URL can't be one.
    """
    key, base_url, model = (environment.get(name, "").strip() for name in OPENAI_VARIABLES)
    if not key and not base_url:
        return Config()
    if base_url and (fault := base_url_fault(base_url)):
        raise ConfigError([ConfigFault(None, None, "OPENAI_BASE_URL", fault)])
    if not model and base_url.rstrip("/") not in {"", OPENAI_URL}:
        message = f"it is not set; name a model of {shown_url(base_url)}: export OPENAI_MODEL=…"
        raise ConfigError([ConfigFault(None, None, "OPENAI_MODEL", message)])
    provider = ProviderConfig(
        base_url=base_url or OPENAI_URL, api_key="${OPENAI_API_KEY}" if key else None
    )
    return Config(
        providers={"openai": provider}, models={DEFAULT_SCENE: f"openai/{model or OPENAI_MODEL}"}
    )


def resolve_model(
    config: Config, scene: str = DEFAULT_SCENE, *, path: Path | None = None
) -> ResolvedModel:
    """Say which provider and model serve a scene. Nothing is read, opened or resolved.

    Args:
        scene: a key of `models`, or `provider/model` itself, which has a slash.
        path: the file that the configuration is from, for the error's place.

    Raises:
        ConfigError: neither the scene nor `default` names a model, or its provider isn't there.
    """
    direct = "/" in scene and scene not in config.models
    used = scene if direct or scene in config.models else DEFAULT_SCENE
    key = scene if direct else f"models.{used}"
    if not direct and used not in config.models:
        have = f" (there are: {', '.join(sorted(config.models))})" if config.models else ""
        message = f"no model serves {scene!r}{have}; run `uwf setup`, or add this key"
        raise ConfigError([ConfigFault(path, None, key, message)])
    name, _, model = (scene if direct else config.models[used]).partition("/")
    provider = config.providers.get(name)
    if provider is None:
        message = f"no provider is called {name!r}; {choices(name, config.providers)}"
        raise ConfigError([ConfigFault(path, None, key, message)])
    if not model and provider.kind == OPENAI_KIND:
        raise ConfigError([ConfigFault(path, None, key, f"write `{name}/MODEL`")])
    return ResolvedModel(
        scene=used,
        provider_name=name,
        kind=provider.kind,
        model=model or None,
        provider=provider,
    )


def make_provider(
    resolved: ResolvedModel, environment: Mapping[str, str], *, path: Path | None = None
) -> LlmProvider:
    """Make the provider of a model that is reached by its base URL.

    Its key is looked up when something is sent for the first time, which a replay never does;
    `ConfigError` is raised then if its variable is not set, or holds what no header can carry.

    Raises:
        ProviderConfigError: the base URL can't be one; a loaded configuration has no such thing.
    """
    base_url, model = resolved.provider.base_url or OPENAI_URL, resolved.model or ""
    provider = LlmProvider(
        base_url=base_url,
        model=model,
        api_key=_secret(resolved, environment, path),
        profile=profile_for(base_url, model),
    )
    return apply_settings(provider, resolved.provider)


def apply_settings(provider: LlmProvider, settings: ProviderConfig) -> LlmProvider:
    """Give the provider what the configuration says on top of what it comes with."""
    overrides = {
        field.name: value
        for field in fields(settings.profile)
        if (value := getattr(settings.profile, field.name)) is not None
    }
    return replace(
        provider,
        timeout_s=settings.timeout_s or provider.timeout_s,
        max_attempts=settings.max_attempts or provider.max_attempts,
        extra_body={**provider.extra_body, **settings.extra_body},
        profile=replace(provider.profile, **overrides),
    )


def _secret(resolved: ResolvedModel, environment: Mapping[str, str], path: Path | None) -> Secret:
    written = resolved.provider.api_key
    return Secret(lambda: _key(written, resolved, environment, path)) if written else Secret("")


def _key(
    written: str, resolved: ResolvedModel, environment: Mapping[str, str], path: Path | None
) -> str:
    reference = REFERENCE.fullmatch(written)
    value = (environment.get(reference[1], "") if reference else written).strip()
    key = f"providers.{resolved.provider_name}.api_key"
    if reference and not value:
        message = (
            f"the environment variable {reference[1]} is not set, which provider "
            f"{resolved.provider_name!r} needs; export {reference[1]}=…"
        )
        raise ConfigError([ConfigFault(path, None, key, message)])
    if not (value.isascii() and value.isprintable() and " " not in value):
        where = f"the environment variable {reference[1]}" if reference else "its value"
        message = f"{where} has spaces or signs that no key has; copy the key again"
        raise ConfigError([ConfigFault(path, None, key, message)])
    return value
