"""A question that a person is asked here can be answered elsewhere: one answer counts."""

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from workflow_cas import SqliteStore, open_store
from workflow_execute import (
    AlreadyAnswered,
    Asking,
    Engine,
    QuestionError,
    ThreadResult,
    read_thread,
    read_turn,
)
from workflow_execute.testing import in_turn
from workflow_protocol import Answer, Effect, Question, ThreadContext, ThreadId

YES, NO = Answer(approved=True, text="here"), Answer(approved=False, text="elsewhere")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with open_store(tmp_path / "store.sqlite3") as opened:
        yield opened


@pytest.fixture
async def other(store: SqliteStore, tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """The same file, opened as another process would."""
    async with open_store(tmp_path / "store.sqlite3") as opened:
        yield opened


async def say(ctx: ThreadContext) -> str:
    answer = await ctx.journal.ask("go", Question(text="May I?"))
    return f"{answer.approved} {answer.text}"


class Person:
    """Sits at the terminal, and says what they say when they are let."""

    def __init__(self, answer: Answer | None = None) -> None:
        self.asked = anyio.Event()
        self.may_answer = anyio.Event()
        self.asking: list[Asking] = []
        self.taken_back = 0
        self._answer = answer

    async def __call__(self, asking: Asking) -> Answer | None:
        self.asking.append(asking)
        self.asked.set()
        try:
            await self.may_answer.wait()
        except anyio.get_cancelled_exc_class():
            self.taken_back += 1
            raise
        return self._answer


async def answers(store: SqliteStore, thread_id: ThreadId) -> list[str]:
    """Who answered in the first step, as recorded."""
    step = (await read_thread(store, thread_id)).steps[0]
    entries = await read_turn(store, step.turn)
    return [each.record.by for each in entries if each.record.kind == "answer"]


async def test_an_answer_from_elsewhere_takes_the_question_back_and_the_thread_goes_on(
    store: SqliteStore, other: SqliteStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    person, done = Person(), list[ThreadResult]()
    engine = Engine(store, locks=tmp_path / "locks", asker=person)

    async def run() -> None:
        done.append(await engine.start(in_turn(say, schema=str), "p"))

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await person.asked.wait()
            (asking,) = person.asking
            assert (asking.role, asking.key, asking.question.text) == ("role-0", "go", "May I?")
            elsewhere = Engine(other, locks=tmp_path / "locks")
            assert await elsewhere.answer(ThreadId(asking.thread), None, NO) == 0
            with pytest.raises(AlreadyAnswered, match=r"denied by .* in process .*: elsewhere"):
                await elsewhere.answer(ThreadId(asking.thread), None, YES)

    (result,) = done
    assert (result.state, result.value, person.taken_back) == ("completed", "False elsewhere", 1)
    assert "the question was answered elsewhere: denied by" in caplog.text
    assert len(await answers(store, result.thread_id)) == 1
    await engine.replay(in_turn(say, schema=str), result.thread_id)


@pytest.mark.parametrize("first", ["here", "elsewhere"])
async def test_of_two_answers_at_the_same_moment_one_counts_for_all(
    store: SqliteStore, other: SqliteStore, first: str
) -> None:
    """Elsewhere comes after the person has spoken and before that is recorded, or the other way."""
    person, done, lost = Person(YES), list[ThreadResult](), list[str]()
    engine = Engine(store, asker=person)

    async def run() -> None:
        done.append(await engine.start(in_turn(say, schema=str), "p"))

    async def answer(thread_id: str) -> None:
        try:
            await Engine(other).answer(ThreadId(thread_id), "go", NO)
        except AlreadyAnswered as error:
            lost.append(error.said)

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await person.asked.wait()
            thread_id = person.asking[0].thread
            if first == "here":
                person.may_answer.set()
                tasks.start_soon(answer, thread_id)
            else:
                await answer(thread_id)
                person.may_answer.set()
    (result,) = done
    assert len(await answers(store, result.thread_id)) == 1
    if lost:
        assert (result.value, lost[0].split(" by ")[0]) == ("True here", "approved")
    else:
        assert result.value == "False elsewhere"


async def test_answers_come_between_the_records_of_a_turn_that_goes_on(
    store: SqliteStore, other: SqliteStore
) -> None:
    """Beside the question the turn records effects, and the answer gets between two of them."""
    person = Person()

    async def turn(ctx: ThreadContext) -> str:
        said: list[Answer] = []

        async def ask() -> None:
            said.append(await ctx.journal.ask("go", Question(text="May I?")))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await person.asked.wait()
            for number in range(30):
                await ctx.journal.run(f"w/{number}", perform, type=int, effect=Effect.UNSAFE)
                if number == 5:
                    await Engine(other).answer(ctx.thread_id, "go", NO)
        return said[0].text

    async def perform() -> int:
        return 1

    with anyio.fail_after(20):
        result = await Engine(store, asker=person).start(in_turn(turn, schema=str), "p")
    assert (result.state, result.value) == ("completed", "elsewhere")
    step = (await read_thread(store, result.thread_id)).steps[0]
    kinds = [each.record.kind for each in await read_turn(store, step.turn)]
    assert (kinds.count("result"), kinds.count("answer")) == (30, 1)


async def test_an_answer_to_a_question_that_the_role_gave_up_does_not_stop_the_step(
    store: SqliteStore, other: SqliteStore
) -> None:
    async def turn(ctx: ThreadContext) -> str:
        with anyio.move_on_after(0):
            await ctx.journal.ask("go", Question(text="May I?"))
        await Engine(other).answer(ctx.thread_id, "go", NO)
        return "done"

    with anyio.fail_after(20):
        result = await Engine(store, asker=Person()).start(in_turn(turn, schema=str), "p")
    assert (result.state, result.value) == ("completed", "done")
    assert len(await answers(store, result.thread_id)) == 1


async def test_what_the_asker_raises_ends_the_role_as_it_is(store: SqliteStore) -> None:
    async def asker(asking: Asking) -> Answer:
        raise OSError("the terminal is gone")

    result = await Engine(store, asker=asker).start(in_turn(say, schema=str), "p")
    assert (result.state, result.summary) == ("failed", "the terminal is gone")


async def test_a_thread_that_asks_nothing_says_so(store: SqliteStore) -> None:
    async def turn(ctx: ThreadContext) -> str:
        return "done"

    result = await Engine(store).start(in_turn(turn, schema=str), "p")
    with pytest.raises(QuestionError, match=f"thread {result.thread_id} has asked nothing"):
        await Engine(store).answer(result.thread_id, None, YES)
