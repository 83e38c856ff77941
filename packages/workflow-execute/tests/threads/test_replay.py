"""Forks share what they were made of, and replays come to the same again."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow_cas import MemoryStore, SqliteStore, content, open_store
from workflow_execute import (
    Asking,
    Engine,
    ForkError,
    JournalMismatch,
    NotRecorded,
    ReplayedRequest,
    Workflow,
    create_workflow,
    read_thread,
    read_turn,
    workflow_adapter,
)
from workflow_execute.testing import in_turn
from workflow_protocol import (
    AdapterBinding,
    Answer,
    Effect,
    OutcomeUnknown,
    Question,
    ThreadContext,
)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with open_store(tmp_path / "store.sqlite3") as opened:
        yield opened


def asking(count: int, performed: list[str], *, twist: str = "") -> Workflow:
    """Three roles that ask `count` models each, in requests that grow."""

    async def turn(ctx: ThreadContext) -> int:
        total = 0
        for number in range(count):
            body = f"{ctx.start.prompt}{twist if number else ''}|{len(ctx.steps)}|{number}"

            async def perform(body: str = body) -> int:
                performed.append(body)
                return len(performed)

            total += await ctx.journal.run(
                f"llm/{number}", perform, type=int, request=lambda body=body: body.encode()
            )
        return total

    return in_turn(turn, turn, turn)


async def test_a_replay_performs_nothing_and_comes_to_the_same(store: SqliteStore) -> None:
    performed: list[str] = []
    done = await Engine(store).start(asking(3, performed), "p")
    before = list(performed)
    requests: list[ReplayedRequest] = []

    replay = await Engine(store).replay(
        asking(3, performed), done.thread_id, on_request=requests.append
    )

    assert performed == before
    assert (replay.steps, replay.effects, replay.requests) == (3, 9, 9)
    assert replay.completion is not None
    assert replay.completion.summary == done.summary
    assert [each.data.decode() for each in requests] == before
    assert [(each.step, each.key) for each in requests][3:5] == [(1, "llm/0"), (1, "llm/1")]


async def test_a_replay_that_comes_to_something_else_says_what(store: SqliteStore) -> None:
    engine = Engine(store)
    done = await engine.start(asking(2, []), "p")

    with pytest.raises(
        JournalMismatch, match=r"'llm/1'.*the first difference is at byte 1: now it is 'X.*'"
    ) as error:
        await engine.replay(asking(2, [], twist="X"), done.thread_id)
    assert error.value.key == "llm/1"
    with pytest.raises(NotRecorded, match="'llm/2'"):
        await engine.replay(asking(3, []), done.thread_id)
    with pytest.raises(JournalMismatch, match=r"were not used: llm/1|it has changed"):
        await engine.replay(asking(1, []), done.thread_id)


async def test_the_request_that_a_thread_stopped_at_is_rebuilt_too(store: SqliteStore) -> None:
    def failing(*, fail: bool) -> Workflow:
        async def turn(ctx: ThreadContext) -> int:
            async def perform() -> int:
                if fail:
                    raise RuntimeError("provider is down")
                return 1

            return await ctx.journal.run("llm/0", perform, type=int, request=lambda: b"question")

        return in_turn(turn)

    failed = await Engine(store).start(failing(fail=True), "p")
    requests: list[ReplayedRequest] = []
    replay = await Engine(store).replay(
        failing(fail=False), failed.thread_id, on_request=requests.append
    )

    assert [(each.data, each.recorded) for each in requests] == [(b"question", False)]
    assert (replay.steps, replay.effects, replay.completion) == (0, 0, None)


async def test_a_fork_keeps_the_first_steps_and_goes_its_own_way(
    store: SqliteStore, tmp_path: Path
) -> None:
    performed: list[str] = []
    engine = Engine(store)
    (tmp_path / "elsewhere").mkdir()
    first = await engine.start(asking(1, performed), "old", workspace=tmp_path)

    fork_id = await engine.fork(
        first.thread_id, at_step=1, prompt="new", workspace=tmp_path / "elsewhere"
    )
    forked = await read_thread(store, fork_id)
    assert (forked.status.state, forked.status.cause) == ("suspended", "forked")
    assert (forked.prompt, forked.workspace) == ("new", tmp_path / "elsewhere")
    assert (forked.origin, forked.own_from) == (first.thread_id, 1)
    done = await engine.resume(asking(1, performed), fork_id)

    assert performed == ["old|0|0", "old|1|0", "old|2|0", "new|1|0", "new|2|0"]
    assert [step.meta for step in done.steps] == [1, 4, 5]
    origin = await read_thread(store, first.thread_id)
    assert (await read_thread(store, fork_id)).steps[0] == origin.steps[0]
    assert (origin.prompt, [step.value for step in origin.steps]) == ("old", [b"1", b"2", b"3"])
    replay = await engine.replay(asking(1, performed), fork_id)
    assert (replay.steps, replay.effects) == (2, 2)


async def test_a_fork_costs_the_same_however_long_the_thread_is(tmp_path: Path) -> None:
    async def cost(steps: int) -> int:
        async def turn(ctx: ThreadContext) -> str:
            return "x" * 1000 + str(len(ctx.steps))

        async with open_store(tmp_path / f"{steps}.sqlite3") as store:
            engine = Engine(store)
            workflow = in_turn(*[turn] * steps, schema=str)
            done = await engine.start(workflow, "p")
            before = (await store.verify()).bytes
            await engine.fork(done.thread_id, at_step=steps - 1, prompt="another")
            return (await store.verify()).bytes - before

    short, long = await cost(3), await cost(60)
    assert long - short <= 8
    assert long < 1000


async def test_where_a_thread_can_not_be_forked(store: SqliteStore, tmp_path: Path) -> None:
    done = await Engine(store).start(asking(1, []), "p")

    for at_step in (-1, 4):
        with pytest.raises(ForkError, match="has 3 steps"):
            await Engine(store).fork(done.thread_id, at_step=at_step)
    with pytest.raises(NotADirectoryError):
        await Engine(store).fork(done.thread_id, workspace=tmp_path / "none")


async def test_a_completed_thread_goes_on_as_a_fork_of_a_fork(store: SqliteStore) -> None:
    engine = Engine(store)
    first = await engine.start(asking(1, []), "one")
    second = await engine.fork(first.thread_id, at_step=2, prompt="two")
    third = await engine.fork(second, at_step=1)
    performed: list[str] = []
    done = await engine.resume(asking(1, performed), third)

    assert (await read_thread(store, third)).prompt == "one"
    assert performed == ["one|1|0", "one|2|0"]
    assert done.state == "completed"


async def test_taking_up_with_another_bundle_is_recorded(store: SqliteStore) -> None:
    old, new = content(b"old bundle"), content(b"new bundle")
    await store.commit([old, new])
    engine = Engine(store)

    def failing_at(step: int) -> Workflow:
        async def turn(ctx: ThreadContext) -> int:
            if len(ctx.steps) == step:
                raise RuntimeError
            return len(ctx.steps)

        return in_turn(turn, turn, turn)

    failed = await engine.start(failing_at(1), "p", bundle=old.hash)
    assert (await read_thread(store, failed.thread_id)).start.bundle == old.hash
    done = await engine.resume(failing_at(9), failed.thread_id, bundle=new.hash)
    stored = await read_thread(store, failed.thread_id)

    assert (done.state, len(done.steps)) == ("completed", 3)
    assert (stored.start.bundle, stored.own_from, stored.origin) == (new.hash, 1, None)
    assert (await engine.replay(failing_at(9), failed.thread_id)).steps == 2


Op = tuple[str, int]
SCRIPTS = st.lists(
    st.lists(
        st.tuples(
            st.sampled_from(["read", "unsafe", "repeatable", "ask", "raw"]), st.integers(0, 9)
        ),
        max_size=4,
    ),
    min_size=1,
    max_size=4,
)


def scripted(script: list[list[Op]], performed: list[str], die: Callable[[], bool]) -> Workflow:
    """Roles that do what a script says, and die now and then."""

    def turn_of(ops: list[Op]):
        async def turn(ctx: ThreadContext) -> str:
            told = ctx.start.prompt
            for number, (op, argument) in enumerate(ops):
                body = f"{told}/{op}/{argument}".encode()

                async def perform(op: str = op, argument: int = argument) -> bytes:
                    performed.append(op)
                    if die():
                        raise RuntimeError("died")
                    return b"\xff%d" % argument if op == "raw" else b'{"n": %d}' % argument

                if op == "ask":
                    answer = await ctx.journal.ask(f"ask/{number}", Question(text=told))
                    told += answer.text
                    continue
                effect = Effect(op) if op in set(Effect) else Effect.READ
                try:
                    data = await ctx.journal.run(
                        f"{op}/{number}",
                        perform,
                        type=bytes,
                        effect=effect,
                        request=lambda b=body: b,
                    )
                    told += data.decode(errors="replace")
                except OutcomeUnknown:
                    told += "?"
            return told

        return turn

    return in_turn(*[turn_of(ops) for ops in script], schema=str)


@settings(max_examples=60, deadline=None)
@given(script=SCRIPTS, deaths=st.lists(st.booleans(), max_size=20), at=st.integers(0, 3))
async def test_replays_and_forks_of_any_thread_equal_it(
    script: list[list[Op]], deaths: list[bool], at: int
) -> None:
    async def asker(asking: Asking) -> Answer:
        return Answer(approved=True, text=f"<{len(asking.question.text)}>")

    performed: list[str] = []
    remaining = list(deaths)
    workflow = scripted(script, performed, lambda: bool(remaining) and remaining.pop())
    engine = Engine(MemoryStore(), asker=asker)
    result = await engine.start(workflow, "p")
    while result.state != "completed":
        result = await engine.resume(workflow, result.thread_id)

    before = list(performed)
    replay = await engine.replay(workflow, result.thread_id)
    assert performed == before
    assert replay.steps == len(script)
    assert replay.completion is not None

    keep = min(at, len(script))
    fork_id = await engine.fork(result.thread_id, at_step=keep)
    again = await engine.resume(scripted(script, [], lambda: False), fork_id)
    unknown = "?" in str(result.value)
    assert again.steps[:keep] == result.steps[:keep]
    assert unknown or again.value == result.value
    stored = await read_thread(engine.store, result.thread_id)
    records = [e.record.kind for s in stored.steps for e in await read_turn(engine.store, s.turn)]
    assert records.count("question") == records.count("answer")


@pytest.mark.parametrize("below", [False, True])
async def test_another_bundle_is_refused_before_anything_is_written_however_deep_it_differs(
    *, below: bool
) -> None:
    def asks(words: str) -> Workflow:
        async def turn(ctx: ThreadContext) -> int:
            try:
                return int((await ctx.journal.ask("go", Question(text=words))).approved)
            except Exception as error:  # whatever a role makes of it
                if words == "other":
                    raise RuntimeError("wrapped") from error
                raise

        return in_turn(turn)

    def workflow(words: str) -> Workflow:
        if not below:
            return asks(words)
        binding = AdapterBinding(workflow_adapter("child", asks(words)))
        return create_workflow(asks(words).definition, binding)

    store = MemoryStore()
    old, new = content(b"old"), content(b"new")
    await store.commit([old, new])
    engine = Engine(store)
    first = await engine.start(workflow("first"), "p", bundle=old.hash)
    assert (first.state, first.cause) == ("suspended", "question")
    before = await store.refs()
    with pytest.raises(JournalMismatch, match="the question has changed"):
        await engine.resume(workflow("other"), first.thread_id, bundle=new.hash)
    assert await store.refs() == before

    same = await engine.resume(workflow("first"), first.thread_id, bundle=new.hash)
    assert (same.state, same.cause) == ("suspended", "question")
    assert (await read_thread(store, first.thread_id)).start.bundle == new.hash
