"""Cancellation of asyncio itself, which ignores anyio's shields, turned into that of anyio."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

import anyio

P = ParamSpec("P")
T = TypeVar("T")


def cancelled_by_anyio(
    work: Callable[P, Coroutine[Any, Any, T]],
) -> Callable[P, Coroutine[Any, Any, T]]:
    """Run an async function in a task of its own, which only anyio cancels, so that shields hold.

    asyncio's own cancellation (`task.cancel()`, `asyncio.timeout`, Ctrl-C) gets through every
    shield: it would not wait for a tool that can't be stopped, nor for the end of a process, and
    the second would cut off what cleans up after the first. It reaches only the task that waits
    here, whose group cancels the work in anyio's way.
    """

    @functools.wraps(work)
    async def wait_for_work(*args: P.args, **kwargs: P.kwargs) -> T:
        results: list[T] = []
        failures: list[Exception] = []

        async def run_work() -> None:
            try:
                results.append(await work(*args, **kwargs))
            except Exception as error:  # noqa: BLE001 - raised below, outside of the group's wrapping
                failures.append(error)

        async with anyio.create_task_group() as group:
            group.start_soon(run_work)
        if failures:
            raise failures[0]
        return results[0]

    return wait_for_work
