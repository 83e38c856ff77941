"""Runs what a command does asynchronously, and ends it in order when a signal says so."""

from __future__ import annotations

import asyncio  # noqa: TID251 - of what raises out of a loop, and where, anyio has no say
import atexit
import os
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from types import FrameType
from typing import TypeVar

import anyio

T = TypeVar("T")

AGAIN_S = 1.0
"""Closing a terminal sends SIGHUP twice, and a wrapper passes Ctrl-C on: one wish, not two."""


def run_async(main: Callable[[], Awaitable[T]]) -> T:
    """The result of `main()`, in an event loop that SIGINT, SIGTERM and SIGHUP end in order.

    No signal raises inside the loop, where it could break or stop what is cleaning up (asyncio's
    own handler does so the second time). A signal that is ignored stays ignored, and outside of
    the main thread all of them are, as Python has it.

    Raises:
        KeyboardInterrupt: a signal has cancelled it.
    """
    end = _End()
    heard = [
        number
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if threading.current_thread() is threading.main_thread()
        and signal.getsignal(number) is not signal.SIG_IGN
    ]
    before = {number: signal.signal(number, end) for number in heard}
    try:
        return anyio.run(end.of, main)
    except asyncio.CancelledError:
        if end.asked_at is None:
            raise
        raise KeyboardInterrupt from None
    finally:
        if end.asked_at is None:
            for number, handler in before.items():
                signal.signal(number, handler)
        else:  # it goes on hearing them until threads are joined, so that the exit code is ours
            atexit.register(_ignore, heard)


def _ignore(numbers: Iterable[int]) -> None:
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)


class _End:
    """The handler of the signals: the first cancels, a late second Ctrl-C ends the process."""

    def __init__(self) -> None:
        self.asked_at: float | None = None
        self._cancel: Callable[[], object] | None = None

    async def of(self, main: Callable[[], Awaitable[T]]) -> T:
        """What is ended."""
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()
        self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        if self.asked_at is not None:  # between `anyio.run` and here
            raise asyncio.CancelledError
        try:
            return await main()
        finally:
            self._cancel = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.asked_at is None:
            self.asked_at = now
            if self._cancel is not None:
                self._cancel()
        elif number == signal.SIGINT and now - self.asked_at > AGAIN_S:
            os.write(2, b"uwf: ended at once, as the first Ctrl-C did not end it\n")
            os._exit(130)  # to the journal this is a crash, and it is made for those
