"""The model that the configuration names for a scene, opened only when a role uses it."""

from __future__ import annotations

import functools
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

import anyio.to_thread

from workflow_protocol import Event
from workflow_reactor import LlmFn, LlmProvider, LlmSource, Secret, create_llm_fn, note_model
from workflow_register._errors import ConfigError, ConfigFault
from workflow_register._home import config_path, find_home
from workflow_register._nearest import suggest
from workflow_register.config._config import DEFAULT_SCENE, OPENAI_KIND, Config
from workflow_register.config._file import load_config
from workflow_register.models._overrides import with_overrides
from workflow_register.models._scenes import (
    ResolvedModel,
    apply_settings,
    environment_config,
    make_provider,
    resolve_model,
)
from workflow_register.models._shared_endpoints import plugin_provider

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PLUGIN_GROUP = "workflow_register.providers"
EXTRAS = {"local": "uwf[local]"}
"""What to install for the kinds that this project has itself."""


class OpenProvider(Protocol):
    """What a plug-in registers under `workflow_register.providers`, with its kind as the name.

    It is entered for each session, so one that is costly to start shares it between sessions.
    """

    def __call__(self, model_name: str | None) -> AbstractAsyncContextManager[LlmProvider]:
        """Start or find an endpoint for the model, or for one of its choice, while it is open."""
        ...


def configured_llm(scene: str = DEFAULT_SCENE, *, home: Path | None = None) -> ConfiguredLlm:
    """Make a model of a scene's name. Nothing is read or opened until a session begins.

    Adapters take the name itself; this is for another `home`, and for what takes an `LlmSource`.

    Args:
        scene: a key of `models` in `workflow.yaml`, or `provider/model` itself, which has a slash;
            where there is no such key, `default` is used.
        home: where the configuration is; `find_home()` at the time of each session if not given.
    """
    made = ConfiguredLlm(scene, home)
    note_model(made)
    return made


class ConfiguredLlm(LlmSource):
    """The model that serves a scene. Each session looks again at the configuration."""

    def __init__(self, scene: str, home: Path | None) -> None:
        self.scene = scene
        self._home = home

    def __repr__(self) -> str:
        return f"configured_llm({self.scene!r})"

    def check(self) -> ResolvedModel:
        """Say what serves the scene, with its key in its place. Nothing is asked or started.

        Raises:
            ConfigError: as for `session`.
        """
        home = self._home or find_home()
        path = config_path(home)
        resolved = resolve_model(effective_config(home), self.scene, path=path)
        if resolved.kind == OPENAI_KIND:
            provider = make_provider(resolved, os.environ, path=path)
            secrets = [provider.api_key, *provider.headers.values()]
            for each in secrets:
                if isinstance(each, Secret):
                    each.reveal()
        else:
            _load_plugin(resolved, path)
        return resolved

    @asynccontextmanager
    async def session(
        self, note: Callable[[Event], Awaitable[None]] | None = None
    ) -> AsyncGenerator[LlmFn]:
        """Open the model for one role's turn.

        Raises:
            ConfigError: nothing is configured for the scene, its key is not in the environment,
                or its provider needs a package that isn't installed.
        """
        async with (
            open_provider(self.scene, home=self._home) as provider,
            create_llm_fn(provider).session(note) as llm,
        ):
            yield llm


@asynccontextmanager
async def open_provider(
    scene: str = DEFAULT_SCENE, *, home: Path | None = None
) -> AsyncGenerator[LlmProvider]:
    """Find the provider of a scene, its endpoint started if it is one that is, with its key.

    Raises:
        ConfigError: nothing is configured for the scene, its key is not in the environment,
            or its provider needs a package that isn't installed.
    """
    home = home or find_home()
    config = await anyio.to_thread.run_sync(effective_config, home)
    resolved = resolve_model(config, scene, path=config_path(home))
    if resolved.kind == OPENAI_KIND:
        yield make_provider(resolved, os.environ, path=config_path(home))
        return
    plugin = await anyio.to_thread.run_sync(_load_plugin, resolved, config_path(home))
    async with plugin_provider(resolved.kind, resolved.model, plugin) as provider:
        named = replace(provider, name=resolved.provider_name)
        yield apply_settings(named, resolved)


def effective_config(home: Path) -> Config:
    """Read `workflow.yaml`, or where it names nothing, what the environment says.

    What `overriding_models` has set is in it. The file is read again only when it has changed.

    Raises:
        ConfigError: all that is wrong with the file, or the environment lacks a model's name.
    """
    path = config_path(home)
    try:
        status = path.stat()
    except FileNotFoundError:
        config = Config()
    except OSError:
        config = load_config(home)  # says what is wrong with the file
    else:
        config = _load_version(home, (status.st_mtime_ns, status.st_size, status.st_ino))
    if not config.models and not config.providers:
        found = environment_config(os.environ)
        config = replace(found, limits=config.limits, supervisor=config.supervisor, mcp=config.mcp)
    return with_overrides(config)


def provider_kinds() -> dict[str, EntryPoint | None]:
    """Return the kinds of provider that can be used here, and what brings each; pure metadata."""
    from importlib.metadata import entry_points  # 15 ms that few commands need

    return {OPENAI_KIND: None, **{entry.name: entry for entry in entry_points(group=PLUGIN_GROUP)}}


@functools.lru_cache(maxsize=8)
def _load_version(home: Path, version: tuple[int, int, int]) -> Config:
    return load_config(home)


def _load_plugin(resolved: ResolvedModel, path: Path) -> OpenProvider:
    key = f"providers.{resolved.provider_name}.kind"
    kinds = provider_kinds()
    entry = kinds.get(resolved.kind)
    if entry is None:
        extra = EXTRAS.get(resolved.kind)
        advice = f"run `uv pip install '{extra}'`" if extra else suggest(resolved.kind, kinds)
        message = f"no installed package provides {resolved.kind!r}; {advice}"
        raise ConfigError([ConfigFault(path, None, key, message)])
    try:
        return cast("OpenProvider", entry.load())
    except (ImportError, AttributeError) as error:
        message = f"{entry.value!r}, which provides {resolved.kind!r}, can't be imported: {error}"
        raise ConfigError([ConfigFault(path, None, key, message)]) from error
