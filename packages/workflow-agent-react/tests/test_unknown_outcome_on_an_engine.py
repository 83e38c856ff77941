"""A tool that was at work when its process died: a person says whether it runs again."""

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from workflow_agent_react import ReactAdapterConfig, create_react_adapter, tool
from workflow_cas import open_store
from workflow_execute import Engine, ThreadResult, Workflow, create_workflow, list_threads
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    Answer,
    Effect,
    RoleDefinition,
    WorkflowDefinition,
)
from workflow_reactor.testing import ScriptedLlm, call

ROLE = RoleDefinition(name="clerk", description="Pays.", system_prompt="Pay.", schema=str)
DEFINITION = WorkflowDefinition(
    description="Paying.",
    table={START: ROLE, ROLE: END},
)


class Bank:
    """Pays, and is interrupted in the first so many payments."""

    def __init__(self, interrupted: int) -> None:
        self.left = interrupted
        self.begun = 0
        self.at_work = anyio.Event()
        self.llm = ScriptedLlm([call("pay", amount=7), call("resolve", value="paid")])
        self.told = ""

    @property
    def workflow(self) -> Workflow:
        @tool(ask_if_unknown=True)
        async def pay(amount: int) -> str:
            """Pay."""
            self.begun += 1
            self.at_work.set()
            if self.left:
                self.left -= 1
                await anyio.sleep_forever()
            return f"paid {amount}"

        adapter = create_react_adapter(ReactAdapterConfig(llm=self.llm, toolset=pay))
        return create_workflow(DEFINITION, AdapterBinding(adapter))

    async def interrupt(self, engine: Engine) -> None:
        """Stop the thread while it pays; to the journal that is as if the process had died."""
        await self.at_work.wait()
        self.at_work = anyio.Event()
        (thread_id,) = await list_threads(engine.store)
        await engine.cancel(thread_id)

    async def run(self, engine: Engine) -> ThreadResult:
        """Start the thread, and be interrupted."""
        ended: list[ThreadResult] = []

        async def start() -> None:
            ended.append(await engine.start(self.workflow, "Pay 7."))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(start)
            await self.interrupt(engine)
        return ended[0]


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with open_store(tmp_path / "store.sqlite3") as store:
        yield Engine(store)


async def test_a_person_lets_it_run_again(engine: Engine) -> None:
    bank = Bank(interrupted=1)
    thread_id = (await bank.run(engine)).thread_id

    asked = await engine.resume(bank.workflow, thread_id)
    assert (asked.state, asked.cause, bank.begun) == ("suspended", "question", 1)
    ((key, question),) = (await engine.questions(thread_id)).items()
    assert question.text.startswith("pay was at work when the process died")
    assert question.details == 'pay {\n  "amount": 7\n}'

    await engine.answer(thread_id, key, Answer(approved=True))
    done = await engine.resume(bank.workflow, thread_id)
    assert (done.value, bank.begun) == ("paid", 2)
    assert "paid 7" in bank.llm.requests[-1]["messages"][-1]["content"]
    assert (await engine.replay(bank.workflow, thread_id)).steps == 1


async def test_a_person_says_that_it_was_done(engine: Engine) -> None:
    bank = Bank(interrupted=1)
    thread_id = (await bank.run(engine)).thread_id
    await engine.resume(bank.workflow, thread_id)

    await engine.answer(thread_id, None, Answer(approved=False, text="it is paid, number 42"))
    done = await engine.resume(bank.workflow, thread_id)
    assert (done.value, bank.begun) == ("paid", 1)
    assert "it is paid, number 42" in bank.llm.requests[-1]["messages"][-1]["content"]
    assert (await engine.replay(bank.workflow, thread_id)).steps == 1


async def test_each_interruption_is_asked_about(engine: Engine) -> None:
    bank = Bank(interrupted=2)
    thread_id = (await bank.run(engine)).thread_id
    await engine.resume(bank.workflow, thread_id)
    await engine.answer(thread_id, None, Answer(approved=True))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(engine.resume, bank.workflow, thread_id)
        await bank.interrupt(engine)

    asked = await engine.resume(bank.workflow, thread_id)
    assert (asked.state, bank.begun) == ("suspended", 2)
    await engine.answer(thread_id, None, Answer(approved=True))
    done = await engine.resume(bank.workflow, thread_id)
    assert (done.value, bank.begun) == ("paid", 3)


@pytest.mark.parametrize(("adds", "begun"), [(True, 1), (False, 2)])
async def test_a_parameter_makes_a_call_unsafe_to_make_again(
    engine: Engine, adds: bool, begun: int
) -> None:
    calls: list[bool] = []
    at_work = anyio.Event()

    @tool(effect=Effect.REPEATABLE, unsafe_if="append")
    async def keep(append: bool = False) -> str:
        """Keep."""
        calls.append(append)
        if len(calls) == 1:
            at_work.set()
            await anyio.sleep_forever()
        return "kept"

    llm = ScriptedLlm([call("keep", append=adds), call("resolve", value="done")])
    adapter = create_react_adapter(ReactAdapterConfig(llm=llm, toolset=keep))
    workflow = create_workflow(DEFINITION, AdapterBinding(adapter))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(engine.start, workflow, "Keep it.")
        await at_work.wait()
        await engine.cancel((await list_threads(engine.store))[0])

    done = await engine.resume(workflow, (await list_threads(engine.store))[0])

    assert (done.value, calls) == ("done", [adds] * begun)
    told = llm.requests[-1]["messages"][-1]["content"]
    assert ("its result was never recorded" in told, told == "kept") == (adds, not adds)
