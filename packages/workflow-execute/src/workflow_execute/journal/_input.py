"""The input of an effect: what is recorded of it, and whether it is the same the next time."""

from __future__ import annotations

import hashlib
from typing import TypeVar

from workflow_execute._differences import (
    find_difference,
    fingerprint,
    fingerprint_start,
    short_digest,
)
from workflow_execute._errors import JournalMismatch
from workflow_execute._records import TurnRecord
from workflow_protocol import Effect, RunOptions

T = TypeVar("T")

_ADVICE = (
    "resume with the model, tools and prompts of the first run, or start the turn again (fresh)"
)


def describe_input(
    key: str, effect: Effect, options: RunOptions[T], previous_size: int
) -> TurnRecord:
    """What is recorded of an effect beside its result.

    Args:
        key: the effect's.
        effect: what kind it is.
        options: what `Journal.run` got.
        previous_size: the bytes of the turn's last request, with which this one begins.
    """
    digest, request = options.get("digest", ""), options.get("request")
    if request is None:
        return TurnRecord(key=key, at_ms=0, effect=effect, digest=short_digest(digest))
    data = request()
    return TurnRecord(
        key=key,
        at_ms=0,
        effect=effect,
        digest=short_digest(digest or hashlib.sha256(data).hexdigest()),
        size=len(data),
        fingerprint=fingerprint(data, fingerprint_start(previous_size)),
    )


def check_input(record: TurnRecord, options: RunOptions[T], previous_size: int) -> None:
    """Make sure that a record is the answer to the same input.

    Raises:
        JournalMismatch: it isn't; says where the input first differs, as far as that is known.
    """
    digest, request = options.get("digest", ""), options.get("request")
    data = None
    if request is not None and not digest:
        data = request()
        digest = hashlib.sha256(data).hexdigest()
    if record.digest == short_digest(digest):
        return
    if request is None or not record.size:
        raise JournalMismatch(record.key, "its input has changed", advice=_ADVICE)
    data = request() if data is None else data
    difference = find_difference(
        data,
        size=record.size,
        recorded=record.fingerprint,
        start=fingerprint_start(previous_size),
    )
    reason = f"its input has changed ({record.size} bytes before, {len(data)} now)"
    raise JournalMismatch(record.key, reason, difference, now=data, advice=_ADVICE)
