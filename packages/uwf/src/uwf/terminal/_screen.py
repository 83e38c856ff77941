"""The screen of a run: while a person is asked something, everything else waits."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, TextIO


class Screen:
    """Stands in for a stream, such as standard error, whose output can wait."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._held: list[str] | None = None

    def write(self, text: str) -> int:
        """Write a text, now or when the prompt is over."""
        with self._lock:
            if self._held is None:
                return self._stream.write(text)
            self._held.append(text)
            return len(text)

    @contextmanager
    def prompt(self) -> Generator[TextIO]:
        """Give the stream for a prompt alone; what others write comes after it."""
        with self._lock:
            self._held = []
        try:
            yield self._stream
        finally:
            with self._lock:
                held, self._held = self._held, None
                self._stream.write("".join(held))
                self._stream.flush()

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        return self._stream.isatty()

    def __getattr__(self, name: str) -> Any:  # flush, fileno, encoding …
        return getattr(self._stream, name)
