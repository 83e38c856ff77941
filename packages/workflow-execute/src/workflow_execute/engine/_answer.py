"""The questions of a suspended thread, and their answers."""

from __future__ import annotations

from pathlib import Path

import anyio

from workflow_cas import RefConflict, Store
from workflow_execute._errors import QuestionError
from workflow_execute.journal._questions import Asker, Questions
from workflow_execute.journal._turn_records import TurnRecords
from workflow_execute.journal._turn_writer import TurnWriter
from workflow_execute.owners._locks import owning
from workflow_execute.threads._read import read_thread, read_turn, thread_ref
from workflow_protocol import Answer, Question, ThreadId

_PATIENCE_S = 5.0


async def read_questions(store: Store, thread_id: ThreadId) -> dict[str, Question]:
    """What a thread waits to be told, by key. See `Engine.questions`."""
    stored = await read_thread(store, thread_id)
    return TurnRecords.of(await read_turn(store, stored.turn)).pending


async def answer_question(
    store: Store, locks: Path | None, thread_id: ThreadId, key: str | None, answer: Answer
) -> int:
    """Record an answer, and return how many questions are left. See `Engine.answer`."""
    async with owning(locks, thread_id, patience_s=_PATIENCE_S):
        while True:
            stored = await read_thread(store, thread_id)
            known = TurnRecords.of(await read_turn(store, stored.turn))
            pending = list(known.pending)
            if key is None and len(pending) != 1:
                raise QuestionError("", pending, "give the key of one open question")
            writer = TurnWriter(store, thread_ref(thread_id, "turn"), stored.turn)
            try:
                await Questions(writer, known).answer(pending[0] if key is None else key, answer)
            except RefConflict:  # somebody else answered something at the same moment
                continue
            return len(known.pending)


def one_at_a_time(asker: Asker) -> Asker:
    """Ask one question at a time, whichever thread has it."""
    asking = anyio.Lock()

    async def ask(key: str, question: Question) -> Answer | None:
        async with asking:
            return await asker(key, question)

    return ask
