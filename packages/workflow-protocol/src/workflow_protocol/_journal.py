"""The journal: whatever costs money or touches the world goes through it, once.

A role's turn may be carried out several times (a crash, a resume, an offline replay); its effects
may not. `Journal.run` performs an effect the first time and returns the recorded result after.
"""

from __future__ import annotations

import builtins
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import (
    Generic,
    Protocol,
    Required,
    TypedDict,
    TypeVar,
    Unpack,
    runtime_checkable,
)

import msgspec

from workflow_protocol._errors import Suspended
from workflow_protocol._events import Event
from workflow_protocol._given import escaped_text
from workflow_protocol._usage import Usage

T = TypeVar("T")

SHOWN_KEYS = "shown/"
"""Begins the keys of what a person was shown, recorded so that it is what runs later. Like a
question, it is no effect: a turn that has its results may be carried out without it."""


class Effect(StrEnum):
    """What doing a thing twice means. It decides what happens to it after a crash."""

    READ = "read"
    """Changes nothing outside (or only costs money): simply done again."""
    REPEATABLE = "repeatable"
    """Doing it again with the same idempotency key has no further effect. A key that is the same
    each time is made of the thread's id, the number of steps so far and the journal key."""
    UNSAFE = "unsafe"
    """Must not happen twice: it is never done again by itself."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Something only a person can decide."""

    text: str
    """What is asked."""
    details: str = ""
    """What exactly is decided on, such as a command with its arguments."""

    def __post_init__(self) -> None:
        _escape(self, "text", "details")


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What the person decided."""

    approved: bool
    """Yes or no."""
    text: str = ""
    """Why, in the person's words."""
    arguments: str = ""
    """For a call that was asked about: a JSON object to run it with instead."""

    def __post_init__(self) -> None:
        _escape(self, "text", "arguments")


def _escape(said: msgspec.Struct, *fields: str) -> None:
    """Keep what a run or a person says, whatever bytes it came from: see `escaped_text`."""
    for field in fields:
        text = getattr(said, field)
        if isinstance(text, str) and not text.isascii():
            msgspec.structs.force_setattr(said, field, escaped_text(text))


class Metered(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """What a model call may use and has used, for the limits of its thread."""

    model: str
    """The name that prices go by."""
    at_most: Callable[[], Usage]
    """The worst case: it is reserved before the call, and counted where the usage isn't known."""
    used: Callable[[T], Usage]
    """Reads the usage off the result."""


class RunOptions(TypedDict, Generic[T], total=False):
    """What `Journal.run` takes by name. A journal that wraps another passes it on as it is:

    async def run(
        self, key: str, perform: Callable[[], Awaitable[T]], **options: Unpack[RunOptions[T]]
    ) -> T:
        return await self.inner.run(key, perform, **options)
    """

    type: Required[builtins.type[T]]
    """The type of the result, used to read it back. msgspec must be able to encode it."""
    effect: Effect
    """What is done about it if the process dies while it runs; `READ` if not given."""
    digest: str
    """Names the input (a hash of the request), so that a replay whose input differs is noticed
    instead of getting an answer to another question."""
    request: Callable[[], bytes] | None
    """Gives the bytes of that input, to show and compare them. Called at once or not at all."""
    metered: Metered[T] | None
    """What the effect may use of the thread's limits."""


_OPTIONS = frozenset(RunOptions.__annotations__)


def check_run_options(options: RunOptions[T]) -> None:
    """Refuse what a type checker refuses, for callers that use none: `efect=` must not count as
    no effect. A journal that performs effects calls it first.

    Raises:
        TypeError: an option is unknown, or `type` is missing.
    """
    if "type" not in options:
        raise TypeError("Journal.run needs the option `type`, the type of the result")
    for name in options:
        if name not in _OPTIONS:
            known = ", ".join(sorted(_OPTIONS))
            raise TypeError(f"Journal.run has no option {name!r}; the options are {known}")


class Journal(Protocol):
    """Run-once effects, questions to people, and events for observers, of one role's turn."""

    async def run(
        self,
        key: str,
        perform: Callable[[], Awaitable[T]],
        **options: Unpack[RunOptions[T]],
    ) -> T:
        """Perform once and record; return the recorded result ever after.

        The result is on disk before this returns; that of a quick `READ` which costs nothing at
        the latest with the next record, and before an effect begins that is no `READ`. Nothing
        is recorded when `perform` raises.

        Args:
            key: unique within the role's turn and the same each time the turn is carried out,
                such as `llm/3` or `tool/3/0`.
            perform: the effect. Its result must be of `type`.
            options: `type` is required; see `RunOptions`.

        Raises:
            OutcomeUnknown: an `UNSAFE` effect was started before a crash and not recorded.
            Suspended: a limit of the thread is reached; the effect was not begun.
        """
        ...

    async def ask(self, key: str, question: Question) -> Answer:
        """Return a person's answer, the same one ever after.

        Args:
            key: unique within the role's turn, as for `run`.
            question: what is asked. Asking something else under this key when the turn is
                carried out again does not get the old answer.

        Raises:
            Suspended: there is none yet. The question is stored, the thread waits, and asks
                again when it resumes.
        """
        ...

    async def note(self, event: Event) -> None:
        """Tell observers what happens. Not recorded; repeated when the turn is repeated."""
        ...


@runtime_checkable
class LastingJournal(Protocol):
    """A journal that keeps what earlier runs of the turn recorded. Not every journal does."""

    def recorded(self, key: str) -> bytes | None:
        """Give the result that is recorded under a key, encoded, without using it up."""
        ...


def recorded_result(journal: Journal, key: str) -> bytes | None:
    """Look up what a journal has under a key; `None` where it has nothing, or keeps nothing."""
    return journal.recorded(key) if isinstance(journal, LastingJournal) else None


class DirectJournal:
    """A journal that only executes: for adapters used without an engine, and for tests."""

    async def run(
        self,
        key: str,
        perform: Callable[[], Awaitable[T]],
        **options: Unpack[RunOptions[T]],
    ) -> T:
        """Perform the effect and return its result."""
        del key
        check_run_options(options)
        return await perform()

    async def ask(self, key: str, question: Question) -> Answer:
        """Nobody can be asked without an engine."""
        raise Suspended(question.text, key=key)

    async def note(self, event: Event) -> None:
        """Nobody listens without an engine."""
