"""A provider whose model runs here: one server for all who use it at the same time."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from urllib.parse import urlsplit

import anyio
from anyio.lowlevel import RunVar

from workflow_local_model._catalogue import DEFAULT_MODEL, LocalModel, find_model
from workflow_local_model._errors import LocalModelError
from workflow_local_model.serve._serve import ServedModel, serving
from workflow_reactor import LlmProvider, Profile, Secret

_log = logging.getLogger("workflow_local_model")

MAX_RESTARTS = 3
"""Of one server that was killed; one that is killed again and again has too little memory."""
_MAX_ATTEMPTS = 12
"""Waits of up to a minute: a server that is started again needs some seconds."""
_MAX_TOKENS = 1024
"""Small models can go on without an end; a reply of this length took a minute where measured."""


class _SharedServer:
    """One model's server, running while it has users."""

    def __init__(self, model: LocalModel) -> None:
        self._model = model
        self._users = 0
        self._lock = anyio.Lock()
        self._served: ServedModel | None = None
        self._restarts = 0
        self._stack = AsyncExitStack()

    async def enter(self) -> ServedModel:
        async with self._lock:
            if self._served is None:
                self._served = await self._stack.enter_async_context(serving(self._model))
                self._restarts = 0
            self._users += 1
            return self._served

    async def leave(self) -> None:
        with anyio.CancelScope(shield=True):  # bounded: stopping a server is
            async with self._lock:
                self._users -= 1
                if not self._users:
                    self._served = None
                    await self._stack.aclose()

    async def keep_running(self) -> None:
        """Start the server again, where its users look for it, each time that it is killed.

        Each user runs this; whoever is first does it. Returns when it can't be kept running: the
        requests that fail then say so.
        """
        while (served := self._served) is not None:
            await served.wait()
            async with self._lock:
                if self._served is not served:
                    continue
                if self._restarts == MAX_RESTARTS:
                    return
                self._restarts += 1
                await self._stack.aclose()
                port = urlsplit(served.base_url).port or 0
                try:
                    again = serving(self._model, port=port)
                    self._served = await self._stack.enter_async_context(again)
                except LocalModelError as error:
                    _log.warning("the server of %s was killed; %s", self._model.name, error)
                    return


_shared: RunVar[dict[str, _SharedServer]] = RunVar("workflow_local_model_servers")


@asynccontextmanager
async def open_provider(model_name: str | None = None) -> AsyncGenerator[LlmProvider]:
    """Serve a local model while the block runs, and give the provider that reaches it.

    Blocks of one event loop that are open at the same time share one server for each model. If it
    is killed, it is started again at the same place, up to three times, and requests wait for it.

    Args:
        model_name: a name of the catalogue; `None` is `DEFAULT_MODEL`.

    Raises:
        UnknownModel: the catalogue has no such model.
        ModelAbsent: its weights aren't there; the message ends with the command that fetches them.
        ServerError: the server did not start.
    """
    model = find_model(model_name or DEFAULT_MODEL)
    servers = _shared.get(dict[str, _SharedServer]())
    _shared.set(servers)
    shared = servers.setdefault(model.name, _SharedServer(model))
    served = await shared.enter()
    try:
        async with _in_background(shared.keep_running):
            yield _provider(served)
    finally:
        await shared.leave()


@asynccontextmanager
async def _in_background(
    work: Callable[[], Coroutine[object, object, None]],
) -> AsyncGenerator[None]:
    """Run something while the block runs. What the block raises comes out as it is."""
    failure: Exception | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(work)
        try:
            yield
        except Exception as error:  # noqa: BLE001 - raised below, outside of the group's wrapping
            failure = error
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure


def _provider(served: ServedModel) -> LlmProvider:
    return LlmProvider(
        base_url=served.base_url,
        model=served.model.name,
        api_key=Secret("local"),
        max_attempts=_MAX_ATTEMPTS,
        extra_body={"temperature": 0.2, "seed": 1},  # so that a run can be repeated
        profile=Profile(
            dialect=served.model.dialect,
            response_format="json_schema",
            forced_tool_choice="required",  # the engine takes a named one and ignores it
            text_tool_calls=True,
            max_tokens=_MAX_TOKENS,
        ),
    )
