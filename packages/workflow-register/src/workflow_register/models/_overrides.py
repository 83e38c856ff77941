"""Models that take the place of the configured ones for a while, such as for one run."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

from workflow_register.config._config import DEFAULT_SCENE, Config, ModelConfig

EVERY_SCENE = ""
"""Stands for all scenes that have no override of their own."""

_overrides: ContextVar[Mapping[str, str] | None] = ContextVar("model overrides", default=None)


@contextmanager
def overriding_models(models: Mapping[str, str]) -> Generator[None]:
    """Let other models serve scenes while the block runs, in its tasks and threads too.

    The configuration file stays as it is, and so do the settings of its scenes. A model that an
    entry names itself, as in `configured_llm("host/name")`, stays too: it is no scene.

    Args:
        models: `provider/model` by scene; under `EVERY_SCENE` the one for all other scenes.
    """
    token = _overrides.set(models or None)
    try:
        yield
    finally:
        _overrides.reset(token)


def with_overrides(config: Config) -> Config:
    """The configuration with the models that hold now."""
    overrides = _overrides.get()
    if overrides is None:
        return config
    models = dict(config.models)
    named = {scene: model for scene, model in overrides.items() if scene != EVERY_SCENE}
    if (every := overrides.get(EVERY_SCENE)) is not None:
        named = {**dict.fromkeys([*models, DEFAULT_SCENE], every), **named}
    for scene, model in named.items():
        found = models.get(scene)
        models[scene] = replace(found, model=model) if found else ModelConfig(model=model)
    return replace(config, models=models)
