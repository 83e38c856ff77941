"""Keeps the endpoints that plug-ins start running from one role's turn to the next."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from workflow_reactor import LlmProvider, keep_open, kept

Opener = Callable[[str | None], AbstractAsyncContextManager[LlmProvider]]


def keep_providers_open() -> AbstractAsyncContextManager[None]:
    """Let an endpoint that a plug-in starts, such as a local model's, run to the end of the block.

    Without this it ends with the turn of the last role that uses it, and the next turn waits for
    its start again. Wrap it around a whole run. What the block raises comes out as it is.
    """
    return keep_open()


def plugin_provider(
    kind: str, model: str | None, opener: Opener
) -> AbstractAsyncContextManager[LlmProvider]:
    """Open a plug-in's provider, for the block here or as long as `keep_providers_open` says."""
    return kept(("provider", kind, model), lambda: opener(model))
