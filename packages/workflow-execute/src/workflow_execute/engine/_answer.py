"""The questions of a thread, and their answers, which any process may give."""

from __future__ import annotations

import anyio

from workflow_cas import RefConflict, Store
from workflow_execute._errors import AlreadyAnswered, QuestionError
from workflow_execute.journal._questions import Asker, Asking, Questions, answer_words
from workflow_execute.journal._turn_records import TurnRecords
from workflow_execute.journal._turn_writer import TurnWriter
from workflow_execute.threads._read import StoredThread, read_thread, read_turn
from workflow_execute.threads._summary import thread_ref
from workflow_protocol import Answer, Question, ThreadId


async def read_questions(store: Store, thread_id: ThreadId) -> dict[str, Question]:
    """What a thread waits to be told, by key. See `Engine.questions`."""
    stored = await read_thread(store, thread_id)
    return TurnRecords.of(await read_turn(store, stored.turn)).pending


async def answer_question(
    store: Store, thread_id: ThreadId, key: str | None, answer: Answer
) -> int:
    """Record an answer, and return how many questions are left. See `Engine.answer`.

    The thread's owner, if there is one, finds the answer behind its own last record: whoever moves
    the ref first is the one whose answer counts.
    """
    while True:
        stored = await read_thread(store, thread_id)
        known = TurnRecords.of(await read_turn(store, stored.turn))
        pending = list(known.pending)
        if key is None and len(pending) > 1:
            raise QuestionError("", pending, "give the key of one open question")
        if key not in pending and (key is not None or not pending):
            raise await _not_asked(store, stored, known, key)
        writer = TurnWriter(store, thread_ref(thread_id, "turn"), stored.turn)
        try:
            await Questions(writer, known).answer(pending[0] if key is None else key, answer)
        except RefConflict:  # the thread goes on at this moment
            continue
        return len(known.pending)


async def _not_asked(
    store: Store, stored: StoredThread, known: TurnRecords, key: str | None
) -> QuestionError:
    """Why there is nothing to answer: most likely somebody has, and the thread may have gone on."""
    turns = [known]
    for step in reversed(stored.steps):
        if any(key in turn.answers or (key is None and turn.answers) for turn in turns):
            break
        turns.append(TurnRecords.of(await read_turn(store, step.turn)))
    for turn in turns:
        found = [each for each in turn.answers if key in {None, each}]
        if found:
            said = answer_words(turn.answers[found[-1]], turn.answered_by.get(found[-1], ""))
            return AlreadyAnswered(found[-1], list(known.pending), said)
    if key is None:
        return QuestionError("", [], f"thread {stored.thread_id} has asked nothing")
    return QuestionError(key, list(known.pending))


def one_at_a_time(asker: Asker) -> Asker:
    """Ask one question at a time, whichever thread has it."""
    asking_now = anyio.Lock()

    async def ask(asking: Asking) -> Answer | None:
        async with asking_now:
            return await asker(asking)

    return ask
