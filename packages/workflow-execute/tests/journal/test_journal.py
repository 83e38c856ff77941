"""Questions, answers and inputs: what a turn's journal keeps beside results."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from workflow_cas import Entry, MemoryStore, RefMove, SqliteStore, Stored, StoreFull, open_store
from workflow_execute import (
    AlreadyAnswered,
    Asking,
    Engine,
    JournalMismatch,
    QuestionError,
    read_attempts,
    read_thread,
    read_turn,
    run_workflow,
)
from workflow_execute.testing import in_turn
from workflow_protocol import Answer, Effect, OutcomeUnknown, Question, Suspended, ThreadContext

YES, NO = Answer(approved=True), Answer(approved=False, text="not now")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with open_store(tmp_path / "store.sqlite3") as opened:
        yield opened


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a read count as quick on a machine that is busy with something else too."""
    monkeypatch.setattr("workflow_execute.journal._journal.QUICK_READ_S", 60.0)


async def ask_three(ctx: ThreadContext) -> int:
    """Ask three things at once, as the calls of one reply may, and count what is approved."""
    answers: dict[str, Answer] = {}

    async def ask(key: str) -> None:
        answers[key] = await ctx.journal.ask(key, Question(text=f"May I do {key}?"))

    try:
        async with anyio.create_task_group() as tasks:
            for key in ("a", "b", "c"):
                tasks.start_soon(ask, key)
    except ExceptionGroup as group:
        raise group.exceptions[0] from group
    return sum(answers[key].approved for key in ("a", "b", "c"))


async def test_questions_that_are_asked_together_are_all_stored_and_answered_in_any_order(
    store: SqliteStore, tmp_path: Path
) -> None:
    engine = Engine(store)
    asked = await engine.start(in_turn(ask_three), "p")
    assert (asked.state, asked.cause) == ("suspended", "question")
    assert asked.summary.endswith("(and 2 more questions)")
    assert set(await engine.questions(asked.thread_id)) == {"a", "b", "c"}

    async with open_store(tmp_path / "store.sqlite3") as other:
        elsewhere = Engine(other)
        assert await elsewhere.answer(asked.thread_id, "c", YES) == 2
        assert await elsewhere.answer(asked.thread_id, "a", NO) == 1
        with pytest.raises(AlreadyAnswered) as again:
            await elsewhere.answer(asked.thread_id, "a", YES)
        assert again.value.pending == ("b",)
    still = await engine.resume(in_turn(ask_three), asked.thread_id)
    assert (still.state, still.summary) == ("suspended", "May I do b?")

    assert await engine.answer(asked.thread_id, None, YES) == 0
    done = await engine.resume(in_turn(ask_three), asked.thread_id)
    assert (done.state, done.value) == ("completed", 2)
    step = (await read_thread(store, asked.thread_id)).steps[0]
    kinds = [entry.record.kind for entry in await read_turn(store, step.turn)]
    assert sorted(kinds) == ["answer"] * 3 + ["question"] * 3


async def test_an_answer_needs_a_question(store: SqliteStore) -> None:
    engine = Engine(store)
    asked = await engine.start(in_turn(ask_three), "p")

    with pytest.raises(
        QuestionError, match="there is no question 'd'; open questions: 'a', 'b', 'c'"
    ):
        await engine.answer(asked.thread_id, "d", YES)
    with pytest.raises(QuestionError, match="give the key of one"):
        await engine.answer(asked.thread_id, None, YES)
    for key in ("a", "b", "c"):
        await engine.answer(asked.thread_id, key, YES)
    await engine.resume(in_turn(ask_three), asked.thread_id)
    with pytest.raises(AlreadyAnswered, match=r"'a' has an answer already: approved by .* in proc"):
        await engine.answer(asked.thread_id, "a", YES)
    with pytest.raises(QuestionError, match="no question is open"):
        await engine.answer(asked.thread_id, "d", YES)


async def test_answers_of_many_at_the_same_moment_are_each_kept_once(
    store: SqliteStore, tmp_path: Path
) -> None:
    asked = await Engine(store).start(in_turn(ask_three), "p")
    outcomes: list[object] = []

    async def answer(key: str, *, locks: Path | None) -> None:
        try:
            engine = Engine(store, locks=locks)
            outcomes.append(type(await engine.answer(asked.thread_id, key, YES)))
        except AlreadyAnswered as error:
            outcomes.append(type(error))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            for key in ("a", "a", "b", "b"):
                tasks.start_soon(lambda key=key: answer(key, locks=None))
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(lambda: answer("c", locks=tmp_path / "locks"))

    assert outcomes.count(int) == outcomes.count(AlreadyAnswered) == 3


async def test_an_asker_is_asked_one_question_at_a_time_and_its_answers_are_kept(
    store: SqliteStore,
) -> None:
    asked: list[str] = []
    at_once = 0

    async def asker(asking: Asking) -> Answer | None:
        nonlocal at_once
        at_once += 1
        assert at_once == 1
        await anyio.lowlevel.checkpoint()
        at_once -= 1
        asked.append(asking.key)
        return None if asking.key == "c" and len(asked) == 3 else YES

    engine = Engine(store, asker=asker)
    first = await engine.start(in_turn(ask_three), "p")
    assert first.state == "suspended"
    second = await engine.resume(in_turn(ask_three), first.thread_id)

    assert (second.value, sorted(asked)) == (3, ["a", "b", "c", "c"])


async def test_another_question_under_the_same_key_does_not_get_the_old_answer(
    store: SqliteStore,
) -> None:
    def asking(text: str):
        async def turn(ctx: ThreadContext) -> int:
            return int((await ctx.journal.ask("k", Question(text=text))).approved)

        return in_turn(turn)

    engine = Engine(store)
    asked = await engine.start(asking("rm a?"), "p")
    await engine.answer(asked.thread_id, "k", YES)
    with pytest.raises(JournalMismatch, match=r"now.*rm -rf /\?"):
        await engine.resume(asking("rm -rf /?"), asked.thread_id)
    assert (await engine.resume(asking("rm a?"), asked.thread_id)).value == 1


async def test_an_unsafe_effect_that_asks_before_it_acts_is_begun_again(store: SqliteStore) -> None:
    done: list[str] = []

    async def turn(ctx: ThreadContext) -> int:
        async def pay() -> int:
            if not (await ctx.journal.ask("pay?", Question(text="Pay?"))).approved:
                return 0
            done.append("paid")
            return 1

        return await ctx.journal.run("pay", pay, type=int, effect=Effect.UNSAFE)

    engine = Engine(store)
    asked = await engine.start(in_turn(turn), "p")
    assert (asked.state, done) == ("suspended", [])
    await engine.answer(asked.thread_id, "pay?", YES)
    paid = await engine.resume(in_turn(turn), asked.thread_id)

    assert (paid.value, done) == (1, ["paid"])


async def test_a_fresh_attempt_begins_the_turn_anew_and_keeps_the_earlier_one(
    store: SqliteStore,
) -> None:
    ran: list[str] = []

    async def turn(ctx: ThreadContext) -> int:
        async def perform() -> int:
            ran.append("x")
            return len(ran)

        found = await ctx.journal.run("llm/0", perform, type=int)
        if found < 3:
            raise RuntimeError("not yet")
        return found

    engine = Engine(store)
    result = await engine.start(in_turn(turn), "p")
    for fresh in (False, True, True):
        assert result.state == "failed"
        result = await engine.resume(in_turn(turn), result.thread_id, fresh=fresh)

    assert (result.value, len(ran)) == (3, 3)
    step = (await read_thread(store, result.thread_id)).steps[0]
    attempts = await read_attempts(store, step.turn)
    assert [[entry.data for entry in each] for each in attempts] == [[b"1"], [b"2"], [b"3"]]
    assert [entry.data for entry in await read_turn(store, step.turn)] == [b"3"]


def conversing(messages: list[bytes], *, digest: bool = False):
    """A turn that sends all messages so far in each request, and dies at the end."""

    async def turn(ctx: ThreadContext) -> int:
        for number in range(len(messages)):
            body = b"[" + b",".join(messages[: number + 1]) + b"]"

            async def perform() -> bytes:
                return b'{"ok": true}'

            given = str(hash(body)) if digest else ""
            await ctx.journal.run(
                f"llm/{number}", perform, type=bytes, digest=given, request=lambda body=body: body
            )
        raise RuntimeError

    return in_turn(turn)


@pytest.mark.parametrize("digest", [False, True])
@pytest.mark.parametrize("changed", [0, 1, 5, 9])
async def test_a_request_that_differs_from_the_recorded_one_is_shown_where_it_differs(
    store: SqliteStore, changed: int, *, digest: bool
) -> None:
    messages = [b"<%d " % number + b"x" * 700 + b">" for number in range(10)]
    first = await Engine(store).start(conversing(messages, digest=digest), "p")
    assert isinstance(first.error, RuntimeError)
    again = await Engine(store).resume(conversing(messages, digest=digest), first.thread_id)
    assert isinstance(again.error, RuntimeError)

    other = list(messages)
    other[changed] = messages[changed].replace(b"x" * 100 + b">", b"THE CHANGE" + b"x" * 90 + b">")
    with pytest.raises(JournalMismatch) as raised:
        await Engine(store).resume(conversing(other, digest=digest), first.thread_id)

    error = raised.value
    assert error.key == f"llm/{changed}"
    assert error.difference is not None
    place = b"".join([b"[", b",".join(other)]).index(b"THE CHANGE")
    assert error.difference.at <= place < error.difference.at + error.difference.within
    assert error.now is not None
    assert b"THE CHANGE" in error.now


async def test_results_that_are_no_json_are_contents_of_their_own(store: SqliteStore) -> None:
    odd = [b"", b" 1", b"1\n", b"\xff", b"{", b"[" * 2000 + b"]" * 2000, b'"\xc3\xa4"', b"null"]
    got: list[bytes] = []
    fail = True

    async def turn(ctx: ThreadContext) -> int:
        for number, data in enumerate(odd):

            async def perform(data: bytes = data) -> bytes:
                return data

            got.append(await ctx.journal.run(str(number), perform, type=bytes))
        if fail:
            raise RuntimeError
        return 1

    first = await Engine(store).start(in_turn(turn), "p")
    fail = False
    assert (await Engine(store).resume(in_turn(turn), first.thread_id)).state == "completed"
    assert got == odd * 2
    assert (await store.verify()).ok


class Failing(MemoryStore):
    """A store whose medium is full now and then."""

    fail = False
    refused = b""
    """What it has no room for, where this isn't empty."""

    async def commit(
        self,
        objects: Sequence[Stored],
        moves: Sequence[RefMove] = (),
        entries: Sequence[Entry] = (),
    ) -> None:
        full = self.refused and any(self.refused in each.data for each in objects)
        if self.fail or full:
            raise StoreFull("no room")
        await super().commit(objects, moves, entries)


class Counting(MemoryStore):
    """Counts commits."""

    def __init__(self) -> None:
        super().__init__()
        self.commits = 0

    async def commit(
        self,
        objects: Sequence[Stored],
        moves: Sequence[RefMove] = (),
        entries: Sequence[Entry] = (),
    ) -> None:
        self.commits += 1
        await super().commit(objects, moves, entries)


async def test_results_that_come_together_are_one_commit() -> None:
    store = Counting()
    took: list[int] = []

    async def turn(ctx: ThreadContext) -> int:
        ready = anyio.Event()

        async def perform() -> int:
            await ready.wait()
            return 1

        before = store.commits
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(lambda n=number: ctx.journal.run(f"tool/0/{n}", perform, type=int))
            await anyio.wait_all_tasks_blocked()
            ready.set()
        took.append(store.commits - before)
        return 20

    result = await Engine(store).start(in_turn(turn), "p")

    assert (result.value, took[0] <= 2) == (20, True)
    step = (await read_thread(store, result.thread_id)).steps[0]
    assert len(await read_turn(store, step.turn)) == 20


@pytest.mark.parametrize(
    ("effect", "commits"), [(Effect.READ, 1), (Effect.REPEATABLE, 2), (Effect.UNSAFE, 3)]
)
async def test_a_round_of_a_model_call_and_a_quick_read_is_one_commit(
    effect: Effect, commits: int, patient: None
) -> None:
    store = Counting()
    took: list[int] = []

    async def turn(ctx: ThreadContext) -> int:
        async def perform() -> int:
            return 1

        before = store.commits
        for number in range(10):
            await ctx.journal.run(f"llm/{number}", perform, type=int, request=lambda: b"{}")
            await ctx.journal.run(f"tool/{number}/0", perform, type=int, effect=effect)
        took.append(store.commits - before)
        return 1

    result = await Engine(store).start(in_turn(turn), "p")

    assert took == [commits * 10]
    step = (await read_thread(store, result.thread_id)).steps[0]
    kept = [each.record.key for each in await read_turn(store, step.turn)]
    assert kept == [f"{key}" for n in range(10) for key in (f"llm/{n}", f"tool/{n}/0")]


async def test_a_read_that_took_its_time_is_written_at_once() -> None:
    store = Counting()
    took: list[int] = []

    async def turn(ctx: ThreadContext) -> int:
        async def perform() -> int:
            await anyio.sleep(0.02)
            return 1

        before = store.commits
        await ctx.journal.run("tool/0/0", perform, type=int)
        took.append(store.commits - before)
        return 1

    await Engine(store).start(in_turn(turn), "p")

    assert took == [1]


@pytest.mark.parametrize("raised", [ValueError("broken"), Suspended("wait", key="k")])
async def test_a_quick_read_is_written_when_the_turn_ends_without_a_step(
    raised: Exception, patient: None
) -> None:
    store = MemoryStore()
    reads: list[int] = []

    async def turn(ctx: ThreadContext) -> int:
        async def perform() -> int:
            reads.append(1)
            return 7

        value = await ctx.journal.run("tool/0/0", perform, type=int)
        if len(reads) == 1 and not resumed:
            raise raised
        return value

    resumed = False
    first = await Engine(store).start(in_turn(turn), "p")
    resumed = True
    again = await Engine(store).resume(in_turn(turn), first.thread_id)

    assert (again.value, len(reads)) == (7, 1)


async def test_a_quick_read_is_on_disk_before_an_effect_begins(
    store: SqliteStore, patient: None
) -> None:
    async def turn(ctx: ThreadContext) -> int:
        async def read() -> int:
            return 7

        async def send() -> int:
            thread = await read_thread(store, ctx.thread_id)
            return len(await read_turn(store, thread.turn))

        await ctx.journal.run("read", read, type=int)
        return await ctx.journal.run("send", send, type=int, effect=Effect.REPEATABLE)

    assert (await Engine(store).start(in_turn(turn), "p")).value == 1


@pytest.mark.parametrize("resumed", [False, True])
async def test_two_effects_under_one_key_are_refused_also_when_the_turn_goes_on(
    store: SqliteStore, resumed: bool
) -> None:
    async def turn(ctx: ThreadContext) -> int:
        async def perform() -> int:
            return 1

        await ctx.journal.run("tool/0", perform, type=int, effect=Effect.REPEATABLE)
        return await ctx.journal.run("tool/0", perform, type=int, effect=Effect.REPEATABLE)

    engine = Engine(store)
    ended = await engine.start(in_turn(turn), "p")
    if resumed:
        with pytest.raises(JournalMismatch, match="a key of its own"):
            await engine.resume(in_turn(turn), ended.thread_id)
    assert isinstance(ended.error, JournalMismatch)
    assert "a key of its own" in ended.summary


@pytest.mark.parametrize(("chars", "at_least"), [(10, 900), (100_000, 999)])
async def test_only_so_many_and_so_much_of_quick_reads_waits(
    chars: int, at_least: int, patient: None
) -> None:
    store = MemoryStore()

    async def turn(ctx: ThreadContext) -> int:
        async def read() -> str:
            return "x" * chars

        for number in range(1_000):
            await ctx.journal.run(f"read/{number}", read, type=str)
        thread = await read_thread(store, ctx.thread_id)
        return len(await read_turn(store, thread.turn))

    done = await Engine(store).start(in_turn(turn), "p")
    assert isinstance(done.value, int)
    assert at_least <= done.value <= 1_000


async def test_a_quick_read_outlives_a_commit_that_fails(patient: None) -> None:
    store = Failing()

    async def turn(ctx: ThreadContext) -> int:
        async def perform() -> int:
            return 1

        await ctx.journal.run("tool/0/0", perform, type=int)
        store.fail = True
        with pytest.raises(StoreFull):
            await ctx.journal.run("llm/1", perform, type=int, request=lambda: b"{}")
        store.fail = False
        return await ctx.journal.run("llm/1", perform, type=int, request=lambda: b"{}")

    result = await Engine(store).start(in_turn(turn), "p")

    step = (await read_thread(store, result.thread_id)).steps[0]
    kept = [each.record.key for each in await read_turn(store, step.turn)]
    assert kept == ["tool/0/0", "llm/1"]


async def test_a_question_that_could_not_be_stored_is_stored_when_it_is_asked_again() -> None:
    store = Failing()

    async def turn(ctx: ThreadContext) -> int:
        store.fail = True
        with pytest.raises(StoreFull):
            await ctx.journal.ask("q", Question(text="May I?"))
        store.fail = False
        return int((await ctx.journal.ask("q", Question(text="May I?"))).approved)

    engine = Engine(store)
    asked = await engine.start(in_turn(turn), "p")
    assert await engine.questions(asked.thread_id) == {"q": Question(text="May I?")}


async def test_a_question_that_can_not_be_taken_back_fails_the_run() -> None:
    failing = Failing()
    engine = Engine(failing)

    async def turn(ctx: ThreadContext) -> int:
        key = "second" if failing.refused else "first"
        answer = await ctx.journal.ask(key, Question(text="May I?"))
        return int(answer.approved)

    asked = await engine.start(in_turn(turn), "p")
    failing.refused = b'"c":"unasked"'
    failed = await engine.resume(in_turn(turn), asked.thread_id)
    assert (failed.state, type(failed.error)) == ("failed", StoreFull)
    assert (await read_thread(failing, asked.thread_id)).status.state == "failed"
    assert set(await engine.questions(asked.thread_id)) == {"first", "second"}


async def test_an_effect_that_asked_first_and_died_later_is_not_begun_a_third_time(
    store: SqliteStore,
) -> None:
    begun: list[str] = []
    at_work = anyio.Event()

    async def turn(ctx: ThreadContext) -> int:
        async def pay() -> int:
            await ctx.journal.ask("pay", Question(text="May I pay?"))
            begun.append("pay")
            at_work.set()
            await anyio.sleep_forever()
            return 1

        try:
            return await ctx.journal.run("pay", pay, type=int, effect=Effect.UNSAFE)
        except OutcomeUnknown:
            return 42

    engine = Engine(store)
    asked = await engine.start(in_turn(turn), "p")
    await engine.answer(asked.thread_id, "pay", YES)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(engine.resume, in_turn(turn), asked.thread_id)
        await at_work.wait()
        await engine.cancel(asked.thread_id)
    done = await engine.resume(in_turn(turn), asked.thread_id)

    assert (done.value, begun) == (42, ["pay"])


async def test_cancelling_one_of_several_records_leaves_the_chain_whole(store: SqliteStore) -> None:
    async def turn(ctx: ThreadContext) -> int:
        async def perform() -> int:
            return 1

        for number in range(20):
            async with anyio.create_task_group() as tasks:
                for i in range(3):
                    tasks.start_soon(
                        lambda i=i, n=number: ctx.journal.run(f"tool/{n}/{i}", perform, type=int)
                    )
                for _ in range(number % 4):
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
            await ctx.journal.run(f"llm/{number}", perform, type=int)
        return 1

    result = await Engine(store).start(in_turn(turn), "p")

    assert (result.state, result.summary) == ("completed", "role-0: 1")
    assert (await store.verify()).ok


async def test_a_suspension_inside_a_read_is_no_result(store: SqliteStore) -> None:
    async def turn(ctx: ThreadContext) -> int:
        async def perform() -> int:
            raise Suspended("wait")

        return await ctx.journal.run("tool/0/0", perform, type=int)

    result = await Engine(store).start(in_turn(turn), "p")

    assert (result.state, result.summary) == ("suspended", "wait")
    assert (await read_thread(store, result.thread_id)).turn is None


async def test_an_unknown_outcome_stays_unknown_however_often_it_is_asked_for(
    store: SqliteStore,
) -> None:
    ran: list[int] = []

    async def turn(ctx: ThreadContext) -> int:
        async def perform() -> int:
            ran.append(1)
            raise RuntimeError("died in the middle")

        try:
            await ctx.journal.run("tool/0/0", perform, type=int, effect=Effect.UNSAFE)
        except OutcomeUnknown:
            if len(await read_turn(store, (await read_thread(store, ctx.thread_id)).turn)) < 9:
                raise RuntimeError("once more") from None
        return 1

    result = await Engine(store).start(in_turn(turn), "p")
    for _ in range(3):
        result = await Engine(store).resume(in_turn(turn), result.thread_id)

    assert (result.state, ran) == ("failed", [1])


async def test_an_effect_with_a_misspelled_option_is_not_performed() -> None:
    done: list[str] = []

    async def turn(ctx: ThreadContext) -> int:
        async def pay() -> int:
            done.append("paid")
            return 1

        misspelled: dict[str, Any] = {"type": int, "efect": Effect.UNSAFE}
        return await ctx.journal.run("pay", pay, **misspelled)

    ended = await run_workflow(in_turn(turn), "p")

    assert (ended.state, done) == ("failed", [])
    assert "no option 'efect'" in ended.summary
