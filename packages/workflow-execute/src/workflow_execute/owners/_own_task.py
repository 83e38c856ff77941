"""Work whose shields hold, whoever cancels it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

import anyio

P = ParamSpec("P")
T = TypeVar("T")


def in_own_task(work: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Have an async function do its work in a task of its own, which only anyio cancels.

    asyncio's own cancellation (`task.cancel()`, `asyncio.timeout`, Ctrl-C) gets through every
    shield: it would not wait for a tool that can't be stopped, nor for the end of a process, and
    the second would cut off what cleans up after the first. It reaches only the task that waits
    here, whose group cancels the work in anyio's way.
    """

    @functools.wraps(work)
    async def waiting(*args: P.args, **kwargs: P.kwargs) -> T:
        results: list[T] = []
        failures: list[Exception] = []

        async def working() -> None:
            try:
                results.append(await work(*args, **kwargs))
            except Exception as error:  # noqa: BLE001 - raised below, outside of the group's wrapping
                failures.append(error)

        async with anyio.create_task_group() as group:
            group.start_soon(working)
        if failures:
            raise failures[0]
        return results[0]

    return waiting
