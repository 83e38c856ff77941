"""A person who answers questions from a script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import anyio.lowlevel

from workflow_execute.journal._questions import Asking
from workflow_protocol import Answer, WorkflowError

Reaction: TypeAlias = Answer | bool | None


class QuestionNotExpected(WorkflowError):
    """A scripted person was asked more often than there are answers."""


class ScriptedPerson:
    """An asker that answers from a script, and keeps what it was asked.

        person = ScriptedPerson([True, Answer(approved=False, text="Not on a Friday.")])
        engine = Engine(store, asker=person)

    Args:
        answers: one for each question, in the order in which they come. `True` approves, `False`
            denies, and with `None` nobody answers, so that the thread is suspended.
    """

    def __init__(self, answers: Sequence[Reaction]) -> None:
        self._answers = list(answers)
        self.asked: list[Asking] = []
        """The questions so far, with the thread and role that asked."""

    async def __call__(self, asking: Asking) -> Answer | None:
        """Answer the next question.

        Raises:
            QuestionNotExpected: there is no answer left. The thread fails with it.
        """
        await anyio.lowlevel.checkpoint()
        self.asked.append(asking)
        number = len(self.asked)
        if number > len(self._answers):
            raise QuestionNotExpected(
                f"question {number} came, but the script has {number - 1} answers: "
                f"{asking.role} asked {asking.question.text!r}"
            )
        given = self._answers[number - 1]
        return Answer(approved=given) if isinstance(given, bool) else given
