"""Models by scene: which provider and model `workflow.yaml` names, and what the endpoint can do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path

from workflow_reactor import LlmProvider, ModelSettings, Secret, base_url_fault, shown_url
from workflow_register._errors import ConfigError, ConfigFault
from workflow_register._nearest import suggest
from workflow_register.config._config import (
    DEFAULT_SCENE,
    OPENAI_KIND,
    REFERENCE,
    Config,
    ModelConfig,
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
    """Its name in the configuration."""
    kind: str
    """What serves it: `openai`, `local`, or the kind of a plug-in."""
    model: str | None
    """`None` leaves the choice to the provider; only plug-in kinds have that."""
    provider: ProviderConfig
    """What the configuration says of it."""
    settings: ModelSettings = field(default_factory=ModelSettings)
    """What the scene says of how the model chooses its words."""


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
        providers={"openai": provider},
        models={DEFAULT_SCENE: ModelConfig(model=f"openai/{model or OPENAI_MODEL}")},
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
    entry = ModelConfig(model=scene) if direct else config.models[used]
    name, _, model = entry.model.partition("/")
    provider = config.providers.get(name)
    if provider is None:
        message = f"no provider is called {name!r}; {suggest(name, config.providers)}"
        raise ConfigError([ConfigFault(path, None, key, message)])
    if not model and provider.kind == OPENAI_KIND:
        raise ConfigError([ConfigFault(path, None, key, f"write `{name}/MODEL`")])
    return ResolvedModel(
        scene=used,
        provider_name=name,
        kind=provider.kind,
        model=model or None,
        provider=provider,
        settings=entry.settings,
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
        name=resolved.provider_name,
        api_key=_secret(resolved, environment, path),
        headers=_headers(resolved, environment, path),
    )
    return apply_settings(provider, resolved)


def apply_settings(provider: LlmProvider, resolved: ResolvedModel) -> LlmProvider:
    """Give the provider what the configuration says on top of what it comes with."""
    settings = resolved.provider
    overrides = {
        each.name: value
        for each in fields(settings.profile)
        if (value := getattr(settings.profile, each.name)) is not None
    }
    return replace(
        provider,
        timeout_s=settings.timeout_s or provider.timeout_s,
        max_attempts=settings.max_attempts or provider.max_attempts,
        extra_body={**provider.extra_body, **settings.extra_body},
        settings=resolved.settings.over(provider.settings),
        profile=replace(provider.profile, **overrides),
    )


def _secret(resolved: ResolvedModel, environment: Mapping[str, str], path: Path | None) -> Secret:
    written = resolved.provider.api_key
    return (
        Secret(lambda: _checked_key(written, resolved, environment, path))
        if written
        else Secret("")
    )


def _headers(
    resolved: ResolvedModel, environment: Mapping[str, str], path: Path | None
) -> dict[str, str | Secret]:
    """The headers, those with a reference looked up when something is sent."""

    def find(name: str, written: str) -> str:
        key = f"providers.{resolved.provider_name}.headers.{name}"

        def look_up(reference: re.Match[str]) -> str:
            return _from_environment(reference[1], resolved, environment, path, key)

        return REFERENCE.sub(look_up, written)

    return {
        name: Secret(partial(find, name, written)) if REFERENCE.search(written) else written
        for name, written in resolved.provider.headers.items()
    }


def _checked_key(
    written: str, resolved: ResolvedModel, environment: Mapping[str, str], path: Path | None
) -> str:
    reference = REFERENCE.fullmatch(written)
    key = f"providers.{resolved.provider_name}.api_key"
    value = written.strip()
    if reference:
        value = _from_environment(reference[1], resolved, environment, path, key)
    if not (value.isascii() and value.isprintable() and " " not in value):
        where = f"the environment variable {reference[1]}" if reference else "its value"
        message = f"{where} has spaces or characters that a key never has; copy it again"
        raise ConfigError([ConfigFault(path, None, key, message)])
    return value


def _from_environment(
    name: str, resolved: ResolvedModel, environment: Mapping[str, str], path: Path | None, key: str
) -> str:
    value = environment.get(name, "").strip()
    if not value:
        message = (
            f"the environment variable {name} is not set, which provider "
            f"{resolved.provider_name!r} needs; export {name}=…"
        )
        raise ConfigError([ConfigFault(path, None, key, message)])
    return value
