"""Approvals on a real store: suspended, answered from another connection, resumed, replayed."""

from pathlib import Path

import anyio.lowlevel
import pytest

from workflow_agent_react import (
    Allow,
    Ask,
    Decision,
    ProposedCall,
    ReactAdapterConfig,
    Toolset,
    create_react_adapter,
    tool,
    versioned,
)
from workflow_cas import open_store
from workflow_execute import AlreadyAnswered, Engine, QuestionError, Workflow, create_workflow
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    Answer,
    Effect,
    RoleDefinition,
    ThreadContext,
    WorkflowDefinition,
)
from workflow_reactor.testing import ScriptedLlm, call, function, say

paid: list[int] = []

CLERK = RoleDefinition(name="clerk", description="d", system_prompt="Pay.", schema=str)
DEFINITION = WorkflowDefinition(description="pays", table={START: CLERK, CLERK: END})
THREE = say(None, *[function("pay", amount=n, id=f"k{n}") for n in (1, 2, 3)])


def payments() -> Toolset:
    @tool(effect=Effect.UNSAFE)
    def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return f"paid {amount}"

    return Toolset.combine(pay)


def ask_first(call: ProposedCall, ctx: ThreadContext) -> Decision:
    return Ask("Pay?") if call.name == "pay" else Allow()


def workflow(llm: ScriptedLlm, *, version: str = "1") -> Workflow:
    config = ReactAdapterConfig(llm=llm, toolset=payments(), guards=[versioned(ask_first, version)])
    return create_workflow(DEFINITION, AdapterBinding(create_react_adapter(config)))


@pytest.fixture(autouse=True)
def nothing_paid() -> None:
    paid.clear()


async def test_parallel_questions_are_answered_elsewhere_in_any_order_and_once(
    tmp_path: Path,
) -> None:
    file = tmp_path / "store.sqlite3"
    llm = ScriptedLlm([THREE, call("resolve", value="done")])
    async with open_store(file) as store:
        waiting = await Engine(store).start(workflow(llm), "p", workspace=tmp_path)
        thread = waiting.thread_id
        assert (waiting.state, waiting.cause) == ("suspended", "question")

    async with open_store(file) as store:
        engine = Engine(store)
        first, second, third = await engine.questions(thread)
        assert await engine.answer(thread, third, Answer(approved=True)) == 2
        changed = Answer(approved=True, arguments='{"amount": 20}')
        assert await engine.answer(thread, second, changed) == 1
        with pytest.raises(AlreadyAnswered):
            await engine.answer(thread, third, Answer(approved=False))
        assert (await engine.resume(workflow(llm), thread)).state == "suspended"
        assert paid == []
        assert await engine.answer(thread, first, Answer(approved=False, text="no")) == 0

        done = await engine.resume(workflow(llm), thread)
        assert (done.state, paid) == ("completed", [20, 3])
        assert [m["content"] for m in llm.requests[1]["messages"][-3:]] == [
            "Error: a person declined this call: no",
            '(a person changed the arguments to {"amount":20} and approved)\npaid 20',
            "(a person approved this call)\npaid 3",
        ]
        replayed = await engine.replay(workflow(ScriptedLlm([])), thread)
        assert replayed is not None
        assert paid == [20, 3]


async def test_a_guard_that_needs_the_history_of_a_waiting_call_does_not_end_its_role(
    tmp_path: Path,
) -> None:
    def rising(call: ProposedCall, ctx: ThreadContext) -> Decision:
        if call.name == "resolve" or call.arguments["amount"] == 1:
            return ask_first(call, ctx)
        before = call.history.succeeded("pay")[-1]  # an IndexError as long as none has run
        return Allow() if before.text == "paid 1" else Ask("Again?")

    llm = ScriptedLlm([THREE, call("resolve", value="done")])
    config = ReactAdapterConfig(llm=llm, toolset=payments(), guards=[rising])
    made = create_workflow(DEFINITION, AdapterBinding(create_react_adapter(config)))
    async with open_store(tmp_path / "store.sqlite3") as store:
        engine = Engine(store)
        waiting = await engine.start(made, "p", workspace=tmp_path)
        assert (waiting.state, len(await engine.questions(waiting.thread_id))) == ("suspended", 1)
        await engine.answer(waiting.thread_id, None, Answer(approved=True))
        waiting = await engine.resume(made, waiting.thread_id)
        assert (waiting.state, paid) == ("suspended", [1, 2])
        await engine.answer(waiting.thread_id, None, Answer(approved=False))
        done = await engine.resume(made, waiting.thread_id)
        assert (done.state, paid) == ("completed", [1, 2])


async def test_an_approval_under_older_rules_does_not_count(tmp_path: Path) -> None:
    llm = ScriptedLlm([call("pay", amount=1), call("resolve", value="done")])
    async with open_store(tmp_path / "store.sqlite3") as store:
        engine = Engine(store)
        waiting = await engine.start(workflow(llm), "p", workspace=tmp_path)
        await engine.answer(waiting.thread_id, None, Answer(approved=True))

        again = await engine.resume(workflow(llm, version="2"), waiting.thread_id)
        assert (again.state, paid) == ("suspended", [])
        await engine.answer(waiting.thread_id, None, Answer(approved=True))
        done = await engine.resume(workflow(llm, version="2"), waiting.thread_id)
        assert (done.state, paid) == ("completed", [1])
        await engine.replay(workflow(llm, version="3"), waiting.thread_id)


async def test_a_question_under_older_rules_is_no_longer_asked(tmp_path: Path) -> None:
    llm = ScriptedLlm([THREE, call("resolve", value="done")])
    async with open_store(tmp_path / "store.sqlite3") as store:
        engine = Engine(store)
        waiting = await engine.start(workflow(llm), "p", workspace=tmp_path)
        old = await engine.questions(waiting.thread_id)
        await engine.resume(workflow(llm, version="2"), waiting.thread_id)
        new = await engine.questions(waiting.thread_id)

        assert (len(old), len(new), old.keys() & new.keys()) == (3, 3, set())
        with pytest.raises(QuestionError):
            await engine.answer(waiting.thread_id, next(iter(old)), Answer(approved=True))
        await engine.resume(workflow(llm), waiting.thread_id)  # the older rules again
        assert (await engine.questions(waiting.thread_id)).keys() == old.keys()
        for key in old:
            await engine.answer(waiting.thread_id, key, Answer(approved=True))
        done = await engine.resume(workflow(llm), waiting.thread_id)
        assert (done.state, paid) == ("completed", [1, 2, 3])
        await engine.replay(workflow(llm), waiting.thread_id)


async def test_a_long_result_is_whole_after_a_resume(tmp_path: Path) -> None:
    words = " ".join(map(str, range(2000)))

    @tool(effect=Effect.READ)
    async def look() -> str:
        """Look."""
        await anyio.lowlevel.checkpoint()
        return words

    def read_on(request: dict[str, object]) -> bytes:
        marker = str(request["messages"]).partition('read_result with hash "')[2]
        return call("read_result", hash=marker[:12], offset=500)

    llm = ScriptedLlm([say(None, function("look", id="a"), function("pay", amount=1, id="b"))])
    later = ScriptedLlm([read_on, call("resolve", value="done")])

    def made(llm: ScriptedLlm) -> Workflow:
        both = Toolset.combine(look, payments())
        config = ReactAdapterConfig(
            llm=llm, toolset=both, guards=[ask_first], max_result_chars=1000
        )
        return create_workflow(DEFINITION, AdapterBinding(create_react_adapter(config)))

    async with open_store(tmp_path / "store.sqlite3") as store:
        engine = Engine(store)
        waiting = await engine.start(made(llm), "p", workspace=tmp_path)
        await engine.answer(waiting.thread_id, None, Answer(approved=True))
        done = await engine.resume(made(later), waiting.thread_id)

    assert done.state == "completed"
    page = later.requests[1]["messages"][-1]["content"]
    assert page.startswith(words[500:1400])
