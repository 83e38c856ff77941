"""Compares two threads: where their requests part, and their steps side by side."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Literal, NamedTuple

import msgspec

from workflow_execute._records import SUPERVISOR_KEYS
from workflow_execute.threads._read import StoredStep, StoredThread, current_attempt
from workflow_execute.transcript._build import TurnAttempts
from workflow_execute.transcript._json_diff import ValueDifference, json_differences
from workflow_protocol import Hash, Usage

MOST_DIFFERENCES = 100
"""So many differences of one value are told; `more_differences` counts the others."""


class RequestPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded request to a model or an agent."""

    number: int
    """Counted from 1 over the thread."""
    step: int
    """The number of the step, counted from 1."""
    key: str
    """Of the journal, such as `llm/0`."""


class RequestDifference(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The first request in which two threads differ."""

    how: Literal["other bytes", "only a", "only b"]
    """One thread has no such request, or both have one and it is another."""
    a: RequestPlace | None = None
    b: RequestPlace | None = None
    differences: tuple[ValueDifference, ...] = ()
    """Where its bytes differ, where they are known."""


class StepSide(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A step of one of the threads."""

    role: str
    hash: Hash
    elapsed_ms: int
    usage: Usage
    cost_micros: int | None = None
    requests: int = 0
    value: msgspec.Raw


class StepPair(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The steps of the same number. One thread may have no such step."""

    number: int
    """Counted from 1."""
    is_shared: bool = False
    """Both threads have the very same step: one was forked from the other, or both from a third."""
    a: StepSide | None = None
    b: StepSide | None = None
    differences: tuple[ValueDifference, ...] = ()
    """Where their values differ. Of different roles nothing is said."""
    more_differences: int = 0


class ThreadComparison(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Two threads compared."""

    a: str
    b: str
    shared_steps: int
    requests: int
    """How many requests are the same before the first that differs."""
    request: RequestDifference | None = None
    """`None` where all requests are the same."""
    steps: tuple[StepPair, ...] = ()
    not_compared: tuple[str, ...] = ()
    """What could not be compared, and why."""


class RecordedThread(NamedTuple):
    """A thread with what `read_records` gave of it."""

    thread: StoredThread
    records: Sequence[TurnAttempts]


class _Request(NamedTuple):
    place: RequestPlace
    digest: str
    size: int

    @property
    def identity(self) -> tuple[str, int]:
        """What is the same for the same request, wherever it stands."""
        return self.digest or self.place.key, self.size


def compare_threads(a: RecordedThread, b: RecordedThread) -> ThreadComparison:
    """Compare two threads by their records alone.

    A request is known by its digest; `add_request_bytes` adds where the bytes differ. The
    supervisor's requests are no part of the workflow and are left out, as are attempts that were
    given up.
    """
    requests_a, requests_b = _requests(a.records), _requests(b.records)
    same, request = _first_difference(requests_a, requests_b)
    steps = [
        _pair(number, one, other, a.records, b.records)
        for number, (one, other) in enumerate(zip_longest(a.thread.steps, b.thread.steps), 1)
    ]
    return ThreadComparison(
        a=a.thread.thread_id,
        b=b.thread.thread_id,
        shared_steps=sum(pair.is_shared for pair in steps),
        requests=same,
        request=request,
        steps=tuple(steps),
        not_compared=tuple(_not_compared(a.thread, b.thread, requests_a[:same])),
    )


def add_request_bytes(comparison: ThreadComparison, a: bytes, b: bytes) -> ThreadComparison:
    """Say where the first differing request differs, by its bytes in both threads."""
    assert comparison.request is not None
    differences = tuple(json_differences(a, b))[:MOST_DIFFERENCES]
    request = msgspec.structs.replace(comparison.request, differences=differences)
    return msgspec.structs.replace(comparison, request=request)


def _requests(records: Sequence[TurnAttempts]) -> list[_Request]:
    found: list[_Request] = []
    for step, attempts in enumerate(records, 1):
        seen: set[str] = set()
        for entry in current_attempt(attempts):
            record = entry.record
            if not record.size or record.key.startswith(SUPERVISOR_KEYS) or record.key in seen:
                continue
            seen.add(record.key)
            place = RequestPlace(number=len(found) + 1, step=step, key=record.key)
            found.append(_Request(place, record.digest, record.size))
    return found


def _first_difference(
    a: Sequence[_Request], b: Sequence[_Request]
) -> tuple[int, RequestDifference | None]:
    """How many requests are the same, and the first that isn't."""
    for same, (one, other) in enumerate(zip_longest(a, b)):
        if one is not None and other is not None and one.identity == other.identity:
            continue
        how: Literal["other bytes", "only a", "only b"] = "other bytes"
        if one is None or other is None:
            how = "only b" if one is None else "only a"
        return same, RequestDifference(
            how=how,
            a=None if one is None else one.place,
            b=None if other is None else other.place,
        )
    return max(len(a), len(b)), None


def _pair(
    number: int,
    a: StoredStep | None,
    b: StoredStep | None,
    records_a: Sequence[TurnAttempts],
    records_b: Sequence[TurnAttempts],
) -> StepPair:
    is_shared = a is not None and b is not None and a.hash == b.hash
    differences: list[ValueDifference] = []
    if a is not None and b is not None and not is_shared and a.record.role == b.record.role:
        differences = list(json_differences(a.value, b.value))
    return StepPair(
        number=number,
        is_shared=is_shared,
        a=None if a is None else _side(a, records_a[number - 1]),
        b=None if b is None else _side(b, records_b[number - 1]),
        differences=tuple(differences[:MOST_DIFFERENCES]),
        more_differences=max(0, len(differences) - MOST_DIFFERENCES),
    )


def _side(step: StoredStep, attempts: TurnAttempts) -> StepSide:
    record = step.record
    return StepSide(
        role=record.role,
        hash=step.hash,
        elapsed_ms=record.elapsed_ms,
        usage=record.usage,
        cost_micros=record.charged_micros or record.usage.cost_micros,
        requests=len(_requests([attempts])),
        value=msgspec.Raw(step.value),
    )


def _not_compared(a: StoredThread, b: StoredThread, same: Sequence[_Request]) -> list[str]:
    """What these two can't be compared in."""
    reasons: list[str] = []
    if a.start.workflow != b.start.workflow:
        reasons.append(
            f"the workflows differ ({a.start.workflow} and {b.start.workflow}), so steps are put "
            "side by side by their number alone"
        )
    without = [request.place.key for request in same if not request.digest]
    if without:
        reasons.append(
            f"{len(without)} requests, such as {without[0]}, have no digest; only their sizes "
            "were compared"
        )
    return reasons
