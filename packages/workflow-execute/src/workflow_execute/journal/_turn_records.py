"""What the records of a turn say, by the key of the effect or question."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from workflow_execute._records import TurnRecord
from workflow_execute.journal._entry import JournalEntry
from workflow_protocol import Answer, Question


@dataclass(slots=True)
class TurnRecords:
    """What is known of a turn, by key."""

    results: dict[str, JournalEntry] = field(default_factory=dict[str, JournalEntry])
    intents: dict[str, TurnRecord] = field(default_factory=dict[str, TurnRecord])
    questions: dict[str, Question] = field(default_factory=dict[str, Question])
    answers: dict[str, Answer] = field(default_factory=dict[str, Answer])
    answered_by: dict[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def of(cls, entries: Iterable[JournalEntry]) -> TurnRecords:
        """Sort the entries of a turn, oldest first."""
        known = cls()
        for entry in entries:
            key = entry.record.key
            match entry.record.kind:
                case "result":
                    known.results[key] = entry
                    known.intents.pop(key, None)
                case "intent":
                    known.intents[key] = entry.record
                case "withdrawn":
                    known.intents.pop(key, None)
                case "unasked":
                    known.questions.pop(key, None)
                case "question":
                    known.questions[key] = msgspec.json.decode(entry.bytes, type=Question)
                case "answer":
                    known.add_answer(entry.record, entry.bytes)
                case "lost" | "attempt" | "files":
                    pass
        return known

    def add_answer(self, record: TurnRecord, data: bytes) -> None:
        """Take in an answer."""
        self.answers[record.key] = msgspec.json.decode(data, type=Answer)
        self.answered_by[record.key] = record.by

    @property
    def pending(self) -> dict[str, Question]:
        """The questions that nobody has answered yet."""
        return {key: asked for key, asked in self.questions.items() if key not in self.answers}
