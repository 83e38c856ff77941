"""Asks an endpoint that is being set up: which models it has, and whether one replies."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import replace

import msgspec

from uwf.terminal._loop import run_async
from workflow_protocol import WorkflowError
from workflow_reactor import (
    LlmProvider,
    ProviderError,
    Secret,
    create_llm_fn,
    list_models,
    shown_url,
    user,
)
from workflow_register import Preset

TEST_TIMEOUT_S = 60.0
TEST_TOKENS = 256
"""The most of the test call's reply; a model that thinks needs some before it says a word."""


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """What is being set up. Its key is nowhere in it but in `typed_key`, which is never written."""

    name: str
    """Of the provider in `workflow.yaml`."""
    base_url: str
    key_variable: str | None
    preset: Preset | None = None
    typed_key: Secret | None = None

    @property
    def place(self) -> str:
        """The base URL as people may see it."""
        return shown_url(self.base_url)

    @property
    def lacks_key(self) -> bool:
        """Whether it wants a key that is not there."""
        return self.key_variable is not None and not self._key()

    def _key(self) -> str:
        if self.typed_key is not None:
            return self.typed_key.reveal()
        return os.environ.get(self.key_variable, "").strip() if self.key_variable else ""

    def provider(self, model: str) -> LlmProvider:
        """Its provider, which asks once and waits for a minute at most.

        Raises:
            ProviderConfigError: the base URL or the key can't be one.
        """
        made = LlmProvider(
            base_url=self.base_url,
            model=model,
            api_key=Secret(self._key()),
            timeout_s=TEST_TIMEOUT_S,
            max_attempts=1,
        )
        return replace(made, profile=replace(made.profile, max_tokens=TEST_TOKENS))


def models_of(endpoint: Endpoint) -> list[str]:
    """The names of its models, by its own list.

    Raises:
        WorkflowError: it has no such list, or can't be reached.
    """
    return run_async(lambda: list_models(endpoint.provider("-")))


def try_model(endpoint: Endpoint, model: str) -> WorkflowError | None:
    """Ask the model for one word; `None` if it replied, whatever it said."""

    async def ask() -> None:
        await create_llm_fn(endpoint.provider(model))([user("Reply with the word: ok")])

    return _error_of(ask)


def _error_of(work: Callable[[], Awaitable[object]]) -> WorkflowError | None:
    try:
        run_async(work)
    except WorkflowError as error:
        return error
    return None


def meaning_of(error: WorkflowError, endpoint: Endpoint) -> str:
    """What an error means and what to do about it, before the endpoint's own words."""
    if not isinstance(error, ProviderError):
        return str(error)
    variable = endpoint.key_variable
    match error.status:
        case 401 if endpoint.lacks_key:
            return f"it wants a key: set the environment variable {variable}"
        case 401 if variable is None:
            return "it wants a key: name the environment variable that holds it (--api-key-env)"
        case 401:
            return f"it does not know the key: check {variable}{_keys_page(endpoint)}"
        case 402:
            return "the account has no credit left"
        case 403:
            return "the key may not do this: check what it is allowed to use"
        case 404:
            return "there is no such model, or the base URL is wrong"
        case 429:
            return "too many requests, or the account has no credit; try again in a minute"
        case int(status) if 300 <= status < 400:
            return "the base URL leads to another place: use that one"
        case int(status) if status >= 500:
            return "the endpoint has a fault of its own; try again later"
        case int():
            return "it refuses the request: is this a model for chats?"
        case None:
            return _unreachable(endpoint)


def _unreachable(endpoint: Endpoint) -> str:
    preset = endpoint.preset
    if preset is not None and preset.start:
        return f"nothing replies at {endpoint.place}: is the server running? `{preset.start}`"
    return f"nothing replies at {endpoint.place}: check the base URL and the network"


def _keys_page(endpoint: Endpoint) -> str:
    preset = endpoint.preset
    return f", or make a new key at {preset.keys_url}" if preset and preset.keys_url else ""
