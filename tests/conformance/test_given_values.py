"""What a caller gives wrongly is told in one sentence, where it comes in: what to write."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from uwf import (
    END,
    START,
    AdapterBinding,
    Answer,
    Effect,
    Engine,
    InputError,
    LlmProvider,
    MemoryStore,
    Question,
    ReactAdapterConfig,
    RoleDefinition,
    ThreadContext,
    Workflow,
    WorkflowDefinition,
    create_react_adapter,
    create_react_agent,
    create_workflow,
    function_adapter,
    otherwise,
    run_children,
    run_workflow,
    workflow_adapter,
)
from workflow_agent_react import ReactConfigError
from workflow_reactor import ProviderConfigError, create_thread_reactor

ODD = "name-\udc80"
role = RoleDefinition(name="r", schema=str)
DEFINITION = WorkflowDefinition(table={START: role, role: END}, result=role)


def of(turn: Callable[[ThreadContext], Awaitable[str]]) -> Workflow[str, str]:
    return create_workflow(
        DEFINITION, AdapterBinding(function_adapter(role, turn, effect=Effect.READ))
    )


def wrong(value: object) -> Any:
    """A value that a checker of types would refuse."""
    return value


async def speak(ctx: ThreadContext) -> str:
    return "spoken"


SPEAK = of(speak)
WRONG_TYPES: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "react adapter": (
        lambda: create_react_adapter(wrong("default")),
        TypeError,
        'the config is of type str; write ReactAdapterConfig(llm="default"',
    ),
    "react agent": (
        lambda: create_react_agent(wrong(None)),
        TypeError,
        'the config is of type NoneType; write ReactAdapterConfig(llm="default"',
    ),
    "reactor": (
        lambda: create_thread_reactor(wrong("default")),
        TypeError,
        "the config is of type str; write ThreadReactorConfig(",
    ),
    "provider": (
        lambda: ReactAdapterConfig(provider=wrong("default")),
        ReactConfigError,
        "`provider` is of type str; give an LlmProvider, or `llm`",
    ),
    "guards": (
        lambda: ReactAdapterConfig(llm="default", guards=wrong(speak)),
        ReactConfigError,
        "`guards` has to be a list of functions",
    ),
    "key": (
        lambda: LlmProvider(base_url="http://host", model="m", api_key=wrong("sk-secret")),
        ProviderConfigError,
        "api_key is no Secret; write Secret(key)",
    ),
    "engine": (
        lambda: Engine(wrong("threads.db")),
        TypeError,
        "the store is a path; open it by `async with open_store(path)",
    ),
    "role of a function": (
        lambda: function_adapter(wrong("r"), wrong(speak)),
        TypeError,
        "the role of a function_adapter is of type str; write function_adapter(role, function)",
    ),
    "function of a role": (
        lambda: function_adapter(role, wrong("speak")),
        TypeError,
        "the function of 'r' is of type str; write function_adapter(role, function)",
    ),
    "name of a child": (
        lambda: workflow_adapter(wrong(SPEAK)),
        TypeError,
        'the name of the child is of type Workflow; write workflow_adapter("name", workflow)',
    ),
    "workflow of a child": (
        lambda: workflow_adapter("child", wrong(DEFINITION)),
        TypeError,
        "the child's workflow is of type WorkflowDefinition; give what create_workflow made",
    ),
}


@pytest.mark.parametrize("what", WRONG_TYPES)
def test_a_value_of_another_type_is_refused_where_it_is_given(what: str) -> None:
    give, error, words = WRONG_TYPES[what]

    with pytest.raises(error, match=re.escape(words)):
        give()


async def test_a_definition_is_no_workflow_and_a_workflow_no_task() -> None:
    with pytest.raises(TypeError, match=r"^the workflow is of type WorkflowDefinition; make one"):
        await run_workflow(wrong(DEFINITION), "p")

    async def children(ctx: ThreadContext) -> str:
        return str(await run_children(ctx, [wrong(SPEAK)]))

    failed = await run_workflow(of(children), "p")
    assert failed.summary == "a task is of type Workflow; write workflow.task(input, key=…)"


async def test_odd_text_of_questions_and_answers_is_kept_with_escapes() -> None:
    async def ask(ctx: ThreadContext) -> str:
        answer = await ctx.journal.ask("k", Question(text=f"delete {ODD}?", details=ODD))
        return answer.text

    engine, workflow = Engine(MemoryStore()), of(ask)
    waits = await engine.start(workflow, "p")
    assert waits.summary == "delete name-\\udc80?"
    await engine.answer(waits.thread_id, None, Answer(approved=True, text=ODD))

    done = await engine.resume(workflow, waits.thread_id)

    assert done.value == "name-\\udc80"


async def test_odd_text_that_a_transition_tells_reaches_the_role_with_escapes() -> None:
    async def told(ctx: ThreadContext) -> str:
        return ctx.told

    row: Any = [otherwise(role, tell=lambda ctx: ODD)]
    definition = WorkflowDefinition(table={START: row, role: END}, result=role)
    adapter = function_adapter(role, told, effect=Effect.READ)

    assert (
        await run_workflow(create_workflow(definition, AdapterBinding(adapter)), "p")
    ).value == ("name-\\udc80")


async def test_an_odd_input_or_name_is_refused_before_anything_begins() -> None:
    engine = Engine(MemoryStore())

    for text, name in ((ODD, "name"), ("p", ODD)):
        with pytest.raises(InputError, match="is not valid UTF-8: at character 5 "):
            await engine.start(SPEAK, text, name=name)
    done = await engine.start(SPEAK, "p")
    with pytest.raises(InputError, match=r"^the name is not valid UTF-8"):
        await engine.fork(done.thread_id, name=ODD)

    assert len(await engine.store.refs("thread/")) == 2  # the head and the status of one


async def run_with_odd_key(ctx: ThreadContext) -> str:
    async def effect() -> str:
        return "done"

    return await ctx.journal.run(ODD, effect, type=str)


async def ask_with_odd_key(ctx: ThreadContext) -> str:
    return (await ctx.journal.ask(ODD, Question(text="?"))).text


async def give_odd_result(ctx: ThreadContext) -> str:
    async def effect() -> str:
        return ODD

    return await ctx.journal.run("key", effect, type=str)


async def run_child_with_odd_key(ctx: ThreadContext) -> str:
    return str(await run_children(ctx, [SPEAK.task("p", key=ODD)]))


async def run_child_with_odd_name(ctx: ThreadContext) -> str:
    return str(await run_children(ctx, [SPEAK.task("p", name=ODD)]))


async def run_child_with_odd_input(ctx: ThreadContext) -> str:
    return str(await run_children(ctx, [SPEAK.task(ODD)]))


@pytest.mark.parametrize(
    ("turn", "words"),
    [
        (run_with_odd_key, r"the journal's key 'name-\\udc80'|function/name-.* is not valid UTF-8"),
        (ask_with_odd_key, "the journal's key .* is not valid UTF-8"),
        (give_odd_result, "the result of 'function/key' can't be recorded: a text in it"),
        (run_child_with_odd_key, "the key of the child is not valid UTF-8: at character 5"),
        (run_child_with_odd_name, "the name of the child is not valid UTF-8: at character 5"),
        (run_child_with_odd_input, "the input is not valid UTF-8: at character 5"),
    ],
)
async def test_what_no_record_can_hold_fails_the_turn_and_says_what_it_was(
    turn: Callable[[ThreadContext], Awaitable[str]], words: str
) -> None:
    failed = await run_workflow(of(turn), "p")

    assert failed.state == "failed"
    assert re.search(words, failed.summary), failed.summary
