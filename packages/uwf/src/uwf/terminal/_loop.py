"""Runs what a command does asynchronously, and ends it in order when a signal says so."""

from __future__ import annotations

import asyncio  # noqa: TID251 - a signal's handler wakes the loop by its own means
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from uwf.terminal._signals import StopSignals

T = TypeVar("T")


def run_async(main: Callable[[], Awaitable[T]]) -> T:
    """The result of `main()`, in an event loop that SIGINT, SIGTERM and SIGHUP end in order.

    No signal raises inside the loop, where it could break or stop what is cleaning up (asyncio's
    own handler does so the second time).

    Raises:
        KeyboardInterrupt: a signal has cancelled it.
    """
    stop = StopSignals(_do_nothing)
    restore = stop.install()

    results: list[T] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        # Not the task itself: that would get through the shields of what is cleaning up.
        with anyio.CancelScope() as scope:
            stop.on_stop = lambda: loop.call_soon_threadsafe(scope.cancel)
            if stop.received:  # before there was anything to cancel
                scope.cancel()
            try:
                results.append(await main())
            finally:
                stop.on_stop = _do_nothing  # the loop is closed next

    try:
        anyio.run(run)
    finally:
        restore()
    if not results:
        raise KeyboardInterrupt
    return results[0]


def _do_nothing() -> None:
    """There is nothing to cancel."""
