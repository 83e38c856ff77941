"""The journal of a replay: it knows the past and does nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Container, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar, Unpack

from workflow_execute._errors import JournalMismatch, NotRecorded
from workflow_execute._records import SUPERVISOR_KEYS
from workflow_execute._supervisor import Decision, recorded_decision
from workflow_execute._workflow import ReplayedFailure
from workflow_execute.journal._entry import JournalEntry
from workflow_execute.journal._input import check_input
from workflow_execute.journal._questions import check_question
from workflow_execute.journal._results import decode
from workflow_execute.journal._turn_records import TurnRecords
from workflow_execute.threads._read import is_of_child
from workflow_protocol import (
    SHOWN_KEYS,
    Answer,
    Effect,
    Event,
    Failure,
    OutcomeUnknown,
    Question,
    RunOptions,
    Suspended,
    current_work,
)

T = TypeVar("T")

_REFUSALS = "refused/"
"""How the keys begin under which a refused request is kept, so that it is not sent again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedRequest:
    """An input of a recorded effect, such as a request to a model."""

    step: int
    """The step in whose turn it was, counted from 0."""
    key: str
    """The journal's key of the effect."""
    data: bytes
    """The exact bytes."""
    recorded: bool
    """False for the one that the thread stopped at, which has no reply yet."""


class ReplayJournal:
    """A journal that knows the past and does nothing."""

    def __init__(
        self,
        step: int,
        entries: Iterable[JournalEntry],
        on_request: Callable[[ReplayedRequest], None] | None,
        failure: Failure | None = None,
    ) -> None:
        self._step = step
        self._failure = failure
        self._known = TurnRecords.of(entries)
        self._on_request = on_request
        self._last_size = 0
        # The supervisor is no part of the workflow: what it did is not asked for again. Nor is a
        # child that a tool started, whose result is the tool's, what a person was shown, and a part
        # of an effect, whose result is recorded as a whole. That a request was refused tells a
        # resume not to send it.
        self.unused = {
            key
            for key in self._known.results
            if not key.startswith(SUPERVISOR_KEYS)
            and not is_of_child(key)
            and not self._known.results[key].record.nested
            and f"/{SHOWN_KEYS}" not in f"/{key}"
            and f"/{_REFUSALS}" not in f"/{key}"
            and not _is_part(key, self._known.results)
        }
        self.used = 0
        self.compared = 0
        self.mismatch: JournalMismatch | None = None
        """The first thing that was asked for otherwise than it is recorded."""

    @property
    def decision(self) -> Decision | None:
        """What the supervisor decided before this turn."""
        return recorded_decision({key: each.bytes for key, each in self._known.results.items()})

    async def run(
        self,
        key: str,
        perform: Callable[[], Awaitable[T]],
        **options: Unpack[RunOptions[T]],
    ) -> T:
        del perform
        digest, request = options.get("digest", ""), options.get("request")
        known = self._known.results.get(key)
        record = known.record if known is not None else self._known.intents.get(key)
        if request is not None and self._on_request is not None:
            self._on_request(
                ReplayedRequest(step=self._step, key=key, data=request(), recorded=bool(known))
            )
        if record is None:
            raise self._end_of_records(key)
        with self._noting_mismatch():
            check_input(record, options, self._last_size)
        if known is None:
            if options.get("effect") is Effect.UNSAFE and (self.unused or self._failure is None):
                raise OutcomeUnknown(key)
            raise self._end_of_records(key)
        if request is not None:
            with self._noting_mismatch():
                self._compare_bytes(key, digest, request)
            self._last_size = known.record.size
        self.unused.discard(key)
        current_work().take(known.record.artifacts)
        self.used += 1
        return decode(known.bytes, options["type"])

    async def ask(self, key: str, question: Question) -> Answer:
        with self._noting_mismatch():
            check_question(key, self._known.questions.get(key), question)
        if key not in self._known.answers:
            if self._failure is not None:
                raise self._end_of_records(key)
            raise Suspended(question.text, key=key)
        return self._known.answers[key]

    async def note(self, event: Event) -> None:
        del event

    def _end_of_records(self, key: str) -> Exception:
        """What is raised where nothing is recorded: of a turn that failed, how it did."""
        return NotRecorded(key) if self._failure is None else ReplayedFailure(self._failure)

    @contextmanager
    def _noting_mismatch(self) -> Generator[None]:
        try:
            yield
        except JournalMismatch as error:
            self.mismatch = self.mismatch or error
            raise

    def _compare_bytes(self, key: str, digest: str, request: Callable[[], bytes]) -> None:
        """Make sure that the digest is that of the bytes, where it is a SHA-256."""
        data = request()
        if len(digest) == 64 and hashlib.sha256(data).hexdigest() != digest:
            raise JournalMismatch(key, "its digest does not match its bytes")
        self.compared += 1


def _is_part(key: str, results: Container[str]) -> bool:
    """Whether an effect whose result is recorded was put together of this one, among others."""
    names = key.split("/")
    return any("/".join(names[:count]) in results for count in range(1, len(names)))
