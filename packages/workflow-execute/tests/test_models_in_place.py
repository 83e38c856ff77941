"""`Workflow.using` puts other models in the place of a workflow's own, in one context."""

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from workflow_cas import MemoryStore
from workflow_execute import Engine, Workflow, create_workflow, run_workflow, workflow_adapter
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    DefinitionError,
    RoleDefinition,
    RoleFn,
    ThreadContext,
    WorkflowDefinition,
)
from workflow_reactor import LlmFn, ask_model, open_llm, user
from workflow_reactor.testing import ScriptedLlm, say

writer = RoleDefinition(name="writer", system_prompt="Write.", schema=str)
critic = RoleDefinition(name="critic", system_prompt="Judge.", schema=str)


def asking(llm: LlmFn) -> Any:
    """An adapter whose roles ask a model once, and give its words."""

    def adapter(prompt: str, schema: Any) -> RoleFn[Any]:
        async def role(ctx: ThreadContext) -> str:
            async with open_llm(llm, ctx.journal.note) as opened:
                reply = await ask_model(opened, ctx.journal, [user(prompt)], round=0, max_rounds=1)
            return reply.text

        return role

    return adapter


def own(*words: str) -> ScriptedLlm:
    return ScriptedLlm([say(each) for each in words])


def two_roles(llm: LlmFn) -> Workflow:
    return create_workflow(
        WorkflowDefinition(table={START: writer, writer: critic, critic: END}),
        AdapterBinding(asking(llm)),
    )


async def values(run: Workflow) -> list[object]:
    return [step.meta for step in (await run_workflow(run, "p")).steps]


async def test_one_model_stands_in_for_all_roles_while_the_block_runs() -> None:
    run, other = two_roles(own("own 1", "own 2")), own("other 1", "other 2")
    with run.using(other):
        assert await values(run) == ["other 1", "other 2"]
    assert await values(run) == ["own 1", "own 2"]
    assert [request["model"] for request in other.requests] == ["scripted"] * 2


async def test_models_are_given_by_role_or_by_name_and_other_roles_keep_theirs() -> None:
    run = two_roles(own("own 1", "own 2"))
    with run.using({critic: own("other")}):
        assert await values(run) == ["own 1", "other"]
    with run.using({"writer": own("another")}):
        assert await values(run) == ["another", "own 2"]


async def test_the_inner_block_comes_first_for_the_roles_that_it_names() -> None:
    run = two_roles(own())
    with run.using(own("outer 1", "outer 2")), run.using({"critic": own("inner")}):
        assert await values(run) == ["outer 1", "inner"]


async def test_another_workflow_and_another_task_see_nothing_of_it() -> None:
    run, beside = two_roles(own("own 1", "own 2")), two_roles(own("beside 1", "beside 2"))
    begun, used = anyio.Event(), anyio.Event()
    found: list[object] = []

    async def elsewhere() -> None:
        begun.set()
        await used.wait()
        found.extend(await values(run))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(elsewhere)
            await begun.wait()
            with run.using(own("other 1", "other 2")):
                used.set()
                assert await values(beside) == ["beside 1", "beside 2"]
                assert await values(run) == ["other 1", "other 2"]
    assert found == ["own 1", "own 2"]


async def test_two_tasks_use_their_own_models_at_the_same_time() -> None:
    run = two_roles(own())
    met, found = list[anyio.Event](), dict[str, list[object]]()

    async def use(name: str) -> None:
        mine = anyio.Event()
        met.append(mine)
        with run.using(own(f"{name} 1", f"{name} 2")):
            mine.set()
            while len(met) < 2:
                await anyio.lowlevel.checkpoint()
            for each in met:
                await each.wait()
            found[name] = await values(run)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(use, "a")
            tasks.start_soon(use, "b")
    assert found == {"a": ["a 1", "a 2"], "b": ["b 1", "b 2"]}


async def test_a_child_uses_the_model_of_the_turn_that_starts_it_unless_it_has_another() -> None:
    child = two_roles(own())
    above = RoleDefinition(name="above", system_prompt="", schema=str)
    run = create_workflow(
        WorkflowDefinition(table={START: above, above: END}),
        AdapterBinding(overrides={above: workflow_adapter("child", child)}),
    )
    with run.using(own("child 1", "child 2")):
        assert await values(run) == ["child 2"]
    with run.using(own("child 1")), child.using({critic: own("its own")}):
        assert await values(run) == ["its own"]


async def test_what_was_run_with_a_model_in_place_is_replayed_and_resumed_with_it() -> None:
    run, engine = two_roles(own()), Engine(MemoryStore())
    with run.using(own("first")):
        failed = await engine.start(run, "p")
    assert (failed.state, len(failed.steps)) == ("failed", 1)
    with run.using(own("second")):
        done = await engine.resume(run, failed.thread_id)
    with run.using(own()):
        assert (await engine.replay(run, done.thread_id)).requests == 2


@pytest.mark.parametrize(
    ("models", "words"),
    [
        ({"reviewer": own()}, "using['reviewer']: no role has this name; the roles are writer"),
        ({3: own()}, "using: a key is of type int; use a role or its name"),
        ({"writer": 3}, "using['writer']: this is of type int; use a model"),
        (None, "using: this is of type NoneType; use a model"),
        ({writer: own(), "writer": own()}, "this role has two models here; leave one"),
    ],
)
def test_what_is_no_model_or_no_role_is_told_when_the_block_is_entered(
    models: Any, words: str
) -> None:
    run = two_roles(own())
    with pytest.raises(DefinitionError) as refused, run.using(models):
        raise AssertionError
    assert words in str(refused.value)
