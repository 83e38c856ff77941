"""The records of one question, joined to what was asked and what was said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from workflow_execute.journal._entry import JournalEntry
from workflow_execute.journal._turn_records import TurnRecords
from workflow_execute.threads._read import current_attempt
from workflow_execute.transcript._model import Asked
from workflow_protocol import Answer, Question


@dataclass(slots=True)
class QuestionDraft:
    """The records under one key. A question that was taken back may be asked again."""

    _times: list[list[JournalEntry]] = field(default_factory=list[list[JournalEntry]])

    def add(self, entry: JournalEntry) -> None:
        """Take in a record."""
        if entry.record.kind == "question" or not self._times:
            self._times.append([])
        self._times[-1].append(entry)

    def questions(self) -> list[Asked]:
        """Each time that it was asked."""
        return [_asked(entries) for entries in self._times]


def pending_questions(attempts: Sequence[Sequence[JournalEntry]]) -> dict[str, Question]:
    """What a turn waits to be told, by key.

    Args:
        attempts: all records of the turn.
    """
    return TurnRecords.of(current_attempt(attempts)).pending


def _asked(entries: list[JournalEntry]) -> Asked:
    by_kind = {entry.record.kind: entry for entry in entries}
    question, answer = Question(text=""), Answer(approved=False)
    if (asked := by_kind.get("question")) is not None:
        question = msgspec.json.decode(asked.bytes, type=Question)
    if (said := by_kind.get("answer")) is not None:
        answer = msgspec.json.decode(said.bytes, type=Answer)
    return Asked(
        key=entries[0].record.key,
        text=question.text,
        details=question.details,
        at_ms=entries[0].record.at_ms,
        approved=None if said is None else answer.approved,
        answer=answer.text,
        arguments=answer.arguments,
        by="" if said is None else said.record.by,
        answered_at_ms=None if said is None else said.record.at_ms,
        withdrawn="unasked" in by_kind,
        records=tuple(each.hash for each in entries),
    )
