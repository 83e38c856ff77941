"""The fakes behave as what they stand for: an asker and a clock."""

from collections.abc import Iterator

import anyio
import anyio.lowlevel
import pytest

from workflow_cas import MemoryStore
from workflow_execute import Engine, read_thread
from workflow_execute.testing import FakeClock, ScriptedPerson, in_turn
from workflow_protocol import Answer, Question, ThreadContext


@pytest.fixture
def clock() -> Iterator[FakeClock]:
    with FakeClock(at_ms=1_000_000) as clock:
        yield clock


async def ask_twice(ctx: ThreadContext) -> str:
    first = await ctx.journal.ask("a", Question(text="First?"))
    second = await ctx.journal.ask("b", Question(text="Second?"))
    return f"{first.approved} {second.approved} {second.text}"


async def test_a_scripted_person_answers_in_order_and_keeps_what_was_asked() -> None:
    person = ScriptedPerson([True, Answer(approved=False, text="Not today.")])
    done = await Engine(MemoryStore(), asker=person).start(in_turn(ask_twice, schema=str), "p")
    assert done.value == "True False Not today."
    assert [(each.role, each.key, each.question.text) for each in person.asked] == [
        ("role-0", "a", "First?"),
        ("role-0", "b", "Second?"),
    ]
    assert {each.thread for each in person.asked} == {done.thread_id}


async def test_a_scripted_person_may_be_away_and_is_not_asked_more_than_was_expected() -> None:
    store = MemoryStore()
    run = in_turn(ask_twice, schema=str)
    waits = await Engine(store, asker=ScriptedPerson([False, None])).start(run, "p")
    assert (waits.state, list(await Engine(store).questions(waits.thread_id))) == (
        "suspended",
        ["b"],
    )
    failed = await Engine(store, asker=ScriptedPerson([True])).start(run, "p")
    assert failed.state == "failed"
    assert "question 2 came, but the script has 1 answers: role-0 asked 'Second?'" in failed.summary


async def test_the_time_of_a_thread_is_that_of_the_fake_clock() -> None:
    store = MemoryStore()

    async def turn(ctx: ThreadContext) -> int:
        clock.advance(1.5)
        return 1

    with FakeClock(at_ms=5_000) as clock:
        done = await Engine(store).start(in_turn(turn, turn), "p")
    thread = await read_thread(store, done.thread_id)
    assert (thread.start.at_ms, thread.status.at_ms) == (5_000, 8_000)
    assert [step.timestamp_ms for step in done.steps] == [6_500, 8_000]


async def test_a_clock_ticks_where_it_is_told_to_and_is_gone_after_the_block() -> None:
    with FakeClock(tick_ms=10) as clock:
        first = await Engine(MemoryStore()).start(in_turn(give_time, give_time), "p")
    times = [step.timestamp_ms for step in first.steps]
    assert times == sorted(set(times))
    assert times[0] > 1_767_225_600_000
    assert clock.at_ms > times[1]
    with FakeClock(at_ms=1), FakeClock(at_ms=2):
        pass
    later = await Engine(MemoryStore()).start(in_turn(give_time), "p")
    assert later.steps[0].timestamp_ms > times[1]


async def give_time(ctx: ThreadContext) -> int:
    return ctx.start.timestamp_ms


async def test_a_clock_of_a_fixture_holds_in_an_async_test(clock: FakeClock) -> None:
    done = await Engine(MemoryStore()).start(in_turn(give_time), "p")
    assert done.value == clock.at_ms == 1_000_000


async def test_other_tasks_keep_their_time() -> None:
    found: list[int] = []

    async def elsewhere() -> None:
        await used.wait()
        done = await Engine(MemoryStore()).start(in_turn(give_time), "p")
        found.append(done.steps[0].timestamp_ms)

    used = anyio.Event()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(elsewhere)
            await anyio.lowlevel.checkpoint()
            with FakeClock(at_ms=7):
                used.set()
                done = await Engine(MemoryStore()).start(in_turn(give_time), "p")
                assert done.value == 7
    assert found[0] > 1_767_225_600_000
