"""Models by scene: which provider and model `workflow.yaml` names, and what the endpoint can do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from workflow_reactor import LlmProvider, Profile, Secret
from workflow_register._config import OPENAI_KIND, REFERENCE, Config, ProviderConfig
from workflow_register._errors import ConfigError, ConfigFault
from workflow_register._nearest import choices

DEFAULT_SCENE = "default"
OPENAI_URL, OPENAI_MODEL = "https://api.openai.com/v1", "gpt-4.1-mini"
OPENAI_VARIABLES = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedModel:
    """What a scene resolves to. Nothing of it is secret: the key is still a reference."""

    scene: str
    """The scene whose entry was used: the one that was asked for, or `default`."""
    provider_name: str
    kind: str
    model: str | None
    """`None` leaves the choice to the provider; only plug-in kinds have that."""
    provider: ProviderConfig


class _Known(NamedTuple):
    host: str
    model_prefix: str
    profile: Profile


# From the providers' API references. The first entry whose host and prefix fit is used.
_KNOWN = (
    _Known("api.openai.com", "", Profile(max_tokens_field="max_completion_tokens")),
    _Known("api.deepseek.com", "", Profile(response_format="json_object")),
)


def profile_for(base_url: str, model: str) -> Profile:
    """Say what an endpoint can do, by its host and model; an unknown one is like OpenAI's API."""
    host = urlsplit(base_url).hostname
    for known in _KNOWN:
        if known.host == host and model.startswith(known.model_prefix):
            return known.profile
    return Profile()


def environment_config(environment: Mapping[str, str]) -> Config:
    """Make a configuration of `OPENAI_API_KEY`, `OPENAI_BASE_URL` and `OPENAI_MODEL`.

    It is empty when neither a key nor a base URL is set. The key stays a reference.

    Raises:
        ConfigError: there is a base URL of another provider than OpenAI, and no model.
    """
    key, base_url, model = (environment.get(name, "").strip() for name in OPENAI_VARIABLES)
    if not key and not base_url:
        return Config()
    if not model and base_url.rstrip("/") not in {"", OPENAI_URL}:
        message = f"it is not set; name a model of {base_url}: export OPENAI_MODEL=…"
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
        path: the file that the configuration is from, for the error's place.

    Raises:
        ConfigError: neither the scene nor `default` names a model, or its provider isn't there.
    """
    used = scene if scene in config.models else DEFAULT_SCENE
    key = f"models.{used}"
    if used not in config.models:
        have = f" (there are: {', '.join(sorted(config.models))})" if config.models else ""
        message = f"no model serves {scene!r}{have}; run `uwf setup`, or add this key"
        raise ConfigError([ConfigFault(path, None, key, message)])
    name, _, model = config.models[used].partition("/")
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
    """Make the provider of a model that is reached by its base URL. Here its key is looked up.

    Raises:
        ConfigError: the key's variable is not set, or holds what no header can carry.
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
    written = resolved.provider.api_key or ""
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
    return Secret(value)
