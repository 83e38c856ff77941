"""The questions of a turn: asked once, answered once, both on disk."""

from __future__ import annotations

import contextlib
import getpass
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import anyio
import msgspec

from workflow_cas import RefConflict, StoreError
from workflow_execute._differences import compare
from workflow_execute._errors import AlreadyAnswered, JournalMismatch, QuestionError
from workflow_execute._ids import now_ms
from workflow_execute._records import TurnKind, TurnRecord
from workflow_execute.journal._results import check_journal_key
from workflow_execute.journal._turn_records import TurnRecords
from workflow_execute.journal._turn_writer import TurnWriter
from workflow_protocol import Answer, Question, Suspended

_log = logging.getLogger("workflow_execute")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A question that a person is asked now."""

    thread: str
    """The thread that waits for the answer."""
    role: str
    """The role at work."""
    key: str
    """The journal's key of the question, which an answer names."""
    question: Question
    """What is asked."""


Asker = Callable[[Asking], Awaitable[Answer | None]]
"""Asks a person at once; `None` if nobody answers now. It is cancelled when somebody answers in
another way meanwhile."""


class Questions:
    """Asks a person, and records the question and the answer.

    Args:
        writer: writes the records.
        known: what earlier runs of the turn recorded.
        asker: asks a person at once.
        thread_id: the thread, for the asker.
    """

    def __init__(
        self,
        writer: TurnWriter,
        known: TurnRecords,
        asker: Asker | None = None,
        *,
        thread_id: str = "",
    ) -> None:
        self.role = ""
        """The role at work, for the asker."""
        self._thread_id = thread_id
        self._writer = writer
        self._writer.on_answer = self._take_answer
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
        check_journal_key(key)
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
                await self._ask_person(self._asker, key, question)
            if (answer := self._known.answers.get(key)) is not None:
                return answer
        raise Suspended(question.text, key=key)

    async def _ask_person(self, asker: Asker, key: str, question: Question) -> None:
        """Ask a person here, and record the answer, until somebody answers here or elsewhere."""
        asking = Asking(thread=self._thread_id, role=self.role, key=key, question=question)
        outcome: Answer | Exception | None = None
        async with anyio.create_task_group() as tasks:

            async def listen() -> None:
                await self._writer.wait_for_answer(lambda: key in self._known.answers)
                tasks.cancel_scope.cancel()

            tasks.start_soon(listen)
            try:
                outcome = await asker(asking)
            except Exception as error:  # noqa: BLE001 - raised below, as it is and not in a group
                outcome = error
            tasks.cancel_scope.cancel()
        if isinstance(outcome, Exception):
            raise outcome
        if outcome is not None:
            with contextlib.suppress(AlreadyAnswered):  # at the same moment, elsewhere
                return await self.answer(key, outcome)
        if key in self._known.answers:
            _log.warning("the question was answered elsewhere: %s", self._said(key))

    async def answer(self, key: str, answer: Answer) -> None:
        """Record a person's answer. Of several at the same time, one is.

        Raises:
            AlreadyAnswered: the question has one.
            QuestionError: nothing was asked under this key.
        """
        pending = self._known.pending
        if key in self._known.answers:
            raise AlreadyAnswered(key, list(pending), self._said(key))
        if key not in pending:
            raise QuestionError(key, list(pending))
        try:
            await self._record(key, "answer", answer, by=this_person())
        except RefConflict:
            if key in self._known.answers:
                raise AlreadyAnswered(key, list(self.pending), self._said(key)) from None
            raise
        self._known.answers[key] = answer
        self._known.answered_by[key] = this_person()

    async def withdraw_unasked(self) -> None:
        """Take back what an earlier run asked and this one, which got as far, did not ask again."""
        for key in [key for key in self._known.pending if key not in self._asked_now]:
            await self._record(key, "unasked")
            del self._known.questions[key]

    def _take_answer(self, record: TurnRecord) -> None:
        assert not isinstance(record.value, msgspec.UnsetType)  # an answer has one
        self._known.add_answer(record, bytes(record.value))

    def _said(self, key: str) -> str:
        return answer_words(self._known.answers[key], self._known.answered_by.get(key, ""))

    async def _record(
        self,
        key: str,
        kind: TurnKind,
        value: Question | Answer | None = None,
        *,
        wait: bool = False,
        by: str = "",
    ) -> None:
        json = msgspec.UNSET if value is None else msgspec.Raw(msgspec.json.encode(value))
        record = TurnRecord(key=key, at_ms=now_ms(), kind=kind, value=json, by=by)
        await self._writer.append(record, wait=wait)


def answer_words(answer: Answer, by: str) -> str:
    """What somebody answered, for people."""
    said = "approved" if answer.approved else "denied"
    changed = " with other arguments" if answer.arguments else ""
    who = f" by {by}" if by else ""
    return f"{said}{changed}{who}{f': {answer.text}' if answer.text else ''}"


def this_person() -> str:
    """Who answers in this process, for people."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # the system has no name for it
        user = f"user {os.getuid()}"
    return f"{user} in process {os.getpid()}"


def check_question(key: str, recorded: Question | None, now: Question) -> None:
    """Make sure that a question is the recorded one, if there is one.

    Raises:
        JournalMismatch: it isn't; says where it differs.
    """
    if recorded is not None and recorded != now:
        difference = compare(msgspec.json.encode(recorded), msgspec.json.encode(now))
        raise JournalMismatch(key, "the question has changed", difference)
