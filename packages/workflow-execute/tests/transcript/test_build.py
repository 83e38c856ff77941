"""A transcript tells each record of a thread once, whatever the records hold."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_cas import MemoryStore, SqliteStore, open_store
from workflow_execute import (
    ChildTask,
    Engine,
    JournalEntry,
    ReplayedRequest,
    StoredThread,
    TurnRecord,
    read_thread,
    run_child,
)
from workflow_execute.testing import Turn, in_turn
from workflow_execute.transcript import (
    Asked,
    Attempt,
    ChildStart,
    Decided,
    Recorded,
    Round,
    Transcript,
    add_told,
    build_transcript,
    pending_questions,
    read_records,
)
from workflow_execute.transcript._rounds import join_records
from workflow_protocol import Answer, Effect, Hash, Question, Suspended, ThreadContext
from workflow_reactor import (
    Conversation,
    ThreadReactorConfig,
    ToolCall,
    ToolDefinition,
    ToolResult,
    ask_model,
    create_thread_reactor,
    user,
)
from workflow_reactor.testing import ScriptedLlm, call, function, say

_NOTES = ToolDefinition(
    name="notes",
    description="",
    parameters={"type": "object", "properties": {"n": {"type": "integer"}}},
    effect=Effect.READ,
)


def records_in(value: object) -> Iterator[Hash]:
    """The records that a part of a transcript names, with all below it."""
    match value:
        case Transcript():
            for turn in value.turns:
                for attempt in turn.attempts:
                    yield from records_in(attempt)
        case Attempt():
            for part in (*value.supervisor, *value.parts):
                yield from records_in(part)
        case Round():
            yield from value.records
            for lost in value.lost:
                yield from lost.records
            for each in value.calls:
                yield from each.records
                for asked in each.questions:
                    yield from asked.records
        case ChildStart() | Asked() | Recorded() | Decided():
            yield from value.records
        case _:
            raise AssertionError(value)


async def told(store: MemoryStore | SqliteStore, thread: StoredThread) -> Transcript:
    """The transcript, of which each record of the store is a part."""
    records = await read_records(store, thread)
    transcript = build_transcript(thread, records)
    there = [entry.hash for attempts in records for each in attempts for entry in each]
    assert Counter(records_in(transcript)) == Counter(there)
    assert msgspec.json.decode(msgspec.json.encode(transcript), type=Transcript) == transcript
    return transcript


async def ran(turn: Turn) -> Transcript:
    """Run a turn to its end in memory."""
    store = MemoryStore()
    result = await Engine(store).start(in_turn(turn), "the task")
    return await told(store, await read_thread(store, result.thread_id))


async def test_a_reactors_rounds_have_their_calls_results_and_what_was_not_accepted() -> None:
    llm = ScriptedLlm(
        [
            say("Let me look.", function("notes", n=1, id="a"), function("nope", id="b")),
            say("no JSON"),
            call("resolve", value="three"),
            say("Done.", function("resolve", value=3, id="c"), function("notes", id="d")),
        ]
    )

    async def handler(call: ToolCall, ctx: ThreadContext) -> str:
        del call, ctx
        return "a note"

    reactor = create_thread_reactor(
        ThreadReactorConfig(llm=llm, system_prompt="", tools=[_NOTES], tool_handler=handler)
    )

    async def turn(ctx: ThreadContext) -> int:
        return await reactor(ctx.scoped("extract"), "How many?", int)

    (only,) = (await ran(turn)).turns
    assert (only.role, only.state, only.value) == ("role-0", "committed", msgspec.Raw(b"3"))
    rounds = [part for part in only.attempts[0].parts if isinstance(part, Round)]
    assert [(each.scope, each.number, each.state, each.text) for each in rounds] == [
        ("extract", 0, "calls", "Let me look."),
        ("extract", 1, "corrected", "no JSON"),
        ("extract", 2, "calls", ""),
        ("extract", 3, "calls", "Done."),
    ]
    assert [(c.name, c.arguments, c.state, c.text) for each in rounds for c in each.calls] == [
        ("notes", '{"n": 1}', "done", "a note"),
        ("nope", "{}", "failed", "there is no tool 'nope'; the tools are notes, resolve"),
        ("resolve", '{"value": "three"}', "refused", ""),
        ("resolve", '{"value": 3}', "accepted", ""),
        ("notes", "{}", "skipped", "it came after the result"),
    ]
    assert {each.model for each in rounds} == {"scripted"}
    assert sum(each.usage.input_tokens for each in rounds) == 40


async def test_what_a_model_was_told_between_its_replies_comes_from_the_requests() -> None:
    llm = ScriptedLlm([say(None, function("nope", id="a")), say("no JSON"), say('{"value": 3}')])
    reactor = create_thread_reactor(ThreadReactorConfig(llm=llm, system_prompt=""))

    async def turn(ctx: ThreadContext) -> int:
        return await reactor(ctx, "How many?", int)

    store = MemoryStore()
    requests: list[ReplayedRequest] = []
    workflow = in_turn(turn)
    result = await Engine(store).start(workflow, "the task")
    await Engine(store).replay(workflow, result.thread_id, on_request=requests.append)
    transcript = add_told(await told(store, await read_thread(store, result.thread_id)), requests)
    first, second, last = transcript.turns[0].attempts[0].parts
    assert isinstance(first, Round)
    assert isinstance(second, Round)
    assert isinstance(last, Round)
    assert (first.calls[0].state, first.calls[0].told) == ("failed", "")  # all of it is recorded
    assert second.told[0].startswith("Your reply is not valid; call `resolve` with the result:")
    assert (last.told, last.state) == ((), "result")


async def test_a_question_is_told_with_its_answer_and_who_gave_it(tmp_path: Path) -> None:
    async def turn(ctx: ThreadContext) -> int:
        asked = await ctx.journal.ask("deploy", Question(text="Deploy?", details="to prod"))
        return int(asked.approved)

    async with open_store(tmp_path / "store.sqlite3") as store:
        engine = Engine(store, locks=tmp_path / "locks")
        result = await engine.start(in_turn(turn), "x")
        thread = await read_thread(store, result.thread_id)
        (waiting,) = (await told(store, thread)).turns
        (asked,) = waiting.attempts[0].parts
        assert isinstance(asked, Asked)
        assert (waiting.state, asked.approved, asked.by) == ("unfinished", None, "")
        assert list(pending_questions((await read_records(store, thread))[-1])) == ["deploy"]

        await engine.answer(result.thread_id, "deploy", Answer(approved=True, text="go"))
        await engine.resume(in_turn(turn), result.thread_id)
        (done,) = (await told(store, await read_thread(store, result.thread_id))).turns
    (asked,) = done.attempts[0].parts
    assert isinstance(asked, Asked)
    assert (asked.text, asked.details) == ("Deploy?", "to prod")
    assert (asked.approved, asked.answer, " in process " in asked.by) == (True, "go", True)


async def test_an_attempt_that_was_given_up_stays_and_is_marked(tmp_path: Path) -> None:
    llm = ScriptedLlm([say("first"), say("second")])

    async def turn(ctx: ThreadContext) -> str:
        messages = Conversation([user("Say something.")])
        reply = await ask_model(llm, ctx.journal, messages, round=0, max_rounds=1)
        if reply.text == "first":
            raise Suspended("later")
        return reply.text

    async with open_store(tmp_path / "store.sqlite3") as store:
        engine = Engine(store, locks=tmp_path / "locks")
        workflow = in_turn(turn, schema=str)
        result = await engine.start(workflow, "x")
        await engine.resume(workflow, result.thread_id, fresh=True)
        (turn_told,) = (await told(store, await read_thread(store, result.thread_id))).turns
    told_attempts = [
        (each.number, each.is_current, [p.text for p in each.parts if isinstance(p, Round)])
        for each in turn_told.attempts
    ]
    assert told_attempts == [(1, False, ["first"]), (2, True, ["second"])]


_SEGMENTS = st.sampled_from(
    ["llm", "tool", "ask", "shown", "told", "skipped", "unknown", "refused", "run", "agent",
     "supervisor", "decision", "child-thread", "child-result", "again", "0", "1",
     "2", "99999999999", "ab12", "", "x\n"]
)  # fmt: skip
_KEYS = st.lists(_SEGMENTS, min_size=1, max_size=5).map("/".join)
_VALUES = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(
        [
            say("text", function("notes", id="a")),
            say("\x1b[2J\u202e"),
            b'"text"',
            b"{}",
            b"[1]",
            b"null",
            b'{"text": "words", "how": "failed"}',
            b'{"decision": "stop", "reason": "r"}',
            b'{"thread_id": "T", "return_code": 0, "summary": ""}',
            msgspec.json.encode(ToolResult(False, "not allowed: no", error="denied")),
            msgspec.json.encode(Question(text="?")),
            msgspec.json.encode(Answer(approved=True)),
        ]
    ),
)
_KINDS = st.sampled_from(["result", "intent", "withdrawn", "lost", "question", "unasked", "answer"])


@given(st.lists(st.tuples(_KEYS, _KINDS, _VALUES), max_size=20), st.booleans())
def test_whatever_is_recorded_stands_in_one_part(
    records: list[tuple[str, str, bytes]], is_committed: bool
) -> None:
    entries = [
        JournalEntry(
            hash=Hash(f"{number:064x}"),
            record=TurnRecord(key=key, at_ms=number, kind=kind),  # type: ignore[arg-type]
            data=data if kind in {"result", "question", "answer"} else None,
        )
        for number, (key, kind, data) in enumerate(records)
    ]
    parts = join_records(entries, is_committed=is_committed)
    msgspec.json.encode(parts)
    found = Counter(hash for part in parts for hash in records_in(part))
    assert found == Counter(entry.hash for entry in entries)


@pytest.mark.parametrize("raw", [b"\xff\x00", b'{"a": 1' * 300, b"9" * 5000, b"[" * 5000])
async def test_a_result_of_any_bytes_is_told(raw: bytes) -> None:
    async def turn(ctx: ThreadContext) -> int:
        async def give() -> bytes:
            return raw

        await ctx.journal.run("mine", give, type=bytes)
        await ctx.journal.run("llm/0", give, type=bytes)
        return 1

    (only,) = (await ran(turn)).turns
    mine, reply = only.attempts[0].parts
    assert isinstance(mine, Recorded)
    assert isinstance(reply, Round)
    text = raw.decode("utf-8", "replace")
    shown = mine.text if isinstance(mine.value, msgspec.UnsetType) else bytes(mine.value).decode()
    assert (shown, reply.text, reply.state) == (text, text, "unreadable")


async def test_a_child_stands_where_it_was_started_with_what_it_came_to() -> None:
    async def below(ctx: ThreadContext) -> int:
        del ctx
        return 7

    async def turn(ctx: ThreadContext) -> int:
        async def give() -> int:
            return 1

        await ctx.journal.run("before", give, type=int)
        task = ChildTask(workflow=in_turn(below), input="part", name="below")
        result = await run_child(ctx, task)
        await ctx.journal.run("after", give, type=int)
        return result.read(int)

    (only,) = (await ran(turn)).turns
    before, child, after = only.attempts[0].parts
    assert (before.key, after.key) == ("before", "after")
    assert isinstance(child, ChildStart)
    assert only.child_threads == (child.thread,)
    assert (child.return_code, child.value, child.summary) == (0, msgspec.Raw(b"7"), "role-0: 7")


async def test_an_agents_run_is_told_in_its_own_words() -> None:
    async def turn(ctx: ThreadContext) -> int:
        async def give() -> dict[str, object]:
            usage = {"input_tokens": 3, "output_tokens": 2, "calls": 1}
            return {"text": "I tried.", "how": "timeout", "words": "too slow", "usage": usage}

        scope = ctx.scoped("agent")
        await scope.journal.run("run/0", give, type=dict[str, object], effect=Effect.UNSAFE)
        return 1

    (only,) = (await ran(turn)).turns
    (run,) = only.attempts[0].parts
    assert isinstance(run, Round)
    assert (run.key, run.scope, run.state) == ("agent/run/0", "agent", "failed")
    assert (run.text, run.fault, run.usage.input_tokens) == ("I tried.", "timeout: too slow", 3)
    assert len(run.records) == 2  # that it began, and how it ended
