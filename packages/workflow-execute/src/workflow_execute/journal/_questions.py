"""The questions of a turn: asked once, answered once, both on disk."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import anyio
import msgspec

from workflow_cas import StoreError
from workflow_execute._differences import compare
from workflow_execute._errors import AlreadyAnswered, JournalMismatch, QuestionError
from workflow_execute._ids import now_ms
from workflow_execute._records import TurnKind, TurnRecord
from workflow_execute.journal._turn_records import TurnRecords
from workflow_execute.journal._turn_writer import TurnWriter
from workflow_protocol import Answer, Question, Suspended

Asker = Callable[[str, Question], Awaitable[Answer | None]]
"""Asks a person at once: the key and the question; `None` if nobody answers now."""


class Questions:
    """Asks a person, and records the question and the answer.

    Args:
        writer: writes the records.
        known: what earlier runs of the turn recorded.
        asker: asks a person at once.
    """

    def __init__(self, writer: TurnWriter, known: TurnRecords, asker: Asker | None = None) -> None:
        self._writer = writer
        self._known = known
        self._asker = asker
        self._asking = anyio.Lock()
        self._asked_now: set[str] = set()

    @property
    def pending(self) -> Mapping[str, Question]:
        """The questions that nobody has answered yet."""
        return self._known.pending

    async def ask(self, key: str, question: Question) -> Answer:
        """See `Journal.ask`."""
        self._asked_now.add(key)
        known = self._known.questions.get(key)
        check_question(key, known, question)
        if (answer := self._known.answers.get(key)) is not None:
            return answer
        if known is None:
            self._known.questions[key] = question
            try:
                await self._record(key, "question", question, wait=True)
            except StoreError:
                del self._known.questions[key]  # nobody could answer it
                raise
        if self._asker is not None:
            async with self._asking:
                answer = await self._asker(key, question)
            if answer is not None:
                await self.answer(key, answer)
                return answer
        raise Suspended(question.text, key=key)

    async def answer(self, key: str, answer: Answer) -> None:
        """Record a person's answer.

        Raises:
            AlreadyAnswered: the question has one.
            QuestionError: nothing was asked under this key.
        """
        pending = self._known.pending
        if key in self._known.answers:
            raise AlreadyAnswered(key, list(pending))
        if key not in pending:
            raise QuestionError(key, list(pending))
        await self._record(key, "answer", answer)
        self._known.answers[key] = answer

    async def withdraw_unasked(self) -> None:
        """Take back what an earlier run asked and this one, which got as far, did not ask again."""
        for key in [key for key in self._known.pending if key not in self._asked_now]:
            await self._record(key, "unasked")
            del self._known.questions[key]

    async def _record(
        self,
        key: str,
        kind: TurnKind,
        value: Question | Answer | None = None,
        *,
        wait: bool = False,
    ) -> None:
        json = msgspec.UNSET if value is None else msgspec.Raw(msgspec.json.encode(value))
        record = TurnRecord(key=key, at_ms=now_ms(), kind=kind, value=json)
        await self._writer.append(record, wait=wait)


def check_question(key: str, recorded: Question | None, now: Question) -> None:
    """Make sure that a question is the recorded one, if there is one.

    Raises:
        JournalMismatch: it isn't; says where it differs.
    """
    if recorded is not None and recorded != now:
        difference = compare(msgspec.json.encode(recorded), msgspec.json.encode(now))
        raise JournalMismatch(key, "the question has changed", difference)
