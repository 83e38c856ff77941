"""The signals that end a command: the first in order, a late second Ctrl-C at once."""

from __future__ import annotations

import atexit
import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType

REPEAT_S = 1.0
"""Closing a terminal sends SIGHUP twice, and a wrapper passes Ctrl-C on: one wish, not two."""


class StopSignals:
    """Handles SIGINT, SIGTERM and SIGHUP.

    Args:
        on_stop: what the first of them does. It may raise.
    """

    def __init__(self, on_stop: Callable[[], object]) -> None:
        self.received = False
        self.on_stop = on_stop
        self._received_at = 0.0
        self._installed: list[signal.Signals] = []

    def install(self) -> Callable[[], None]:
        """Handle them from now on; what this gives goes back, where none has come.

        One that is ignored, as under `nohup`, stays ignored, and outside of the main thread all of
        them are, as Python has it.
        """
        if threading.current_thread() is threading.main_thread():
            numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
            self._installed = [n for n in numbers if signal.getsignal(n) is not signal.SIG_IGN]
        # When threads are joined nobody hears them any more, so that the exit code is ours.
        atexit.register(self._ignore)
        before = {number: signal.signal(number, self) for number in self._installed}
        for number, handler in before.items():
            if isinstance(handler, StopSignals) and handler.received and not self.received:
                self(number, None)  # it raised where Python drops that, such as a destructor

        def restore() -> None:
            if not self.received:
                for number, handler in before.items():
                    signal.signal(number, handler)

        return restore

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Take a signal."""
        now = time.monotonic()
        if not self.received:
            self.received, self._received_at = True, now
            self.on_stop()
        elif number == signal.SIGINT and now - self._received_at > REPEAT_S:
            os.write(2, b"uwf: stopped at once, because the first Ctrl-C did not stop it\n")
            os._exit(130)  # to the journal this is a crash, and it is made for those

    def _ignore(self) -> None:
        for number in self._installed:
            signal.signal(number, signal.SIG_IGN)
