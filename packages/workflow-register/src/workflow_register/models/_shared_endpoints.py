"""Keeps the endpoints that plug-ins start running from one role's turn to the next."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar

import anyio
import anyio.abc

from workflow_reactor import LlmProvider

Opener = Callable[[str | None], AbstractAsyncContextManager[LlmProvider]]


class _SharedEndpoints:
    """Each endpoint is opened and closed by a task of its own: whichever turn asks for it first
    may run in a task that ends long before, and a cancel scope can't be left by another task.
    """

    def __init__(self, group: anyio.abc.TaskGroup) -> None:
        self._group = group
        self._lock = anyio.Lock()
        self._open: dict[tuple[str, str | None], LlmProvider] = {}
        self.done = anyio.Event()

    async def provider(self, kind: str, model: str | None, opener: Opener) -> LlmProvider:
        async with self._lock:
            key = (kind, model)
            if key not in self._open:
                self._open[key] = await self._group.start(self._hold_open, opener, model)
            return self._open[key]

    async def _hold_open(
        self,
        opener: Opener,
        model: str | None,
        *,
        task_status: anyio.abc.TaskStatus[LlmProvider],
    ) -> None:
        async with opener(model) as provider:
            task_status.started(provider)
            await self.done.wait()


_shared_endpoints: ContextVar[_SharedEndpoints | None] = ContextVar(
    "workflow_register_kept", default=None
)


@asynccontextmanager
async def keep_providers_open() -> AsyncGenerator[None]:
    """Let an endpoint that a plug-in starts, such as a local model's, run to the end of the block.

    Without this it ends with the turn of the last role that uses it, and the next turn waits for
    its start again. Wrap it around a whole run. What the block raises comes out as it is.
    """
    failure: Exception | None = None
    async with anyio.create_task_group() as group:
        shared = _SharedEndpoints(group)
        token = _shared_endpoints.set(shared)
        try:
            yield
        except Exception as error:  # noqa: BLE001 - raised below, outside of the group's wrapping
            failure = error
        finally:
            _shared_endpoints.reset(token)
            shared.done.set()
    if failure is not None:
        raise failure


@asynccontextmanager
async def plugin_provider(
    kind: str, model: str | None, opener: Opener
) -> AsyncGenerator[LlmProvider]:
    """Open a plug-in's provider, for the block here or as long as `keep_providers_open` says."""
    shared = _shared_endpoints.get()
    if shared is not None:
        yield await shared.provider(kind, model, opener)
        return
    async with opener(model) as provider:
        yield provider
