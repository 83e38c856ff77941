"""Sets have no order: what is judged and shown of one is the same in each process."""

import json
import os
import subprocess
import sys
from itertools import permutations
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pydantic
import pytest

from workflow_agent_react import (
    Ask,
    Decision,
    ProposedCall,
    ReactAdapterConfig,
    create_react_adapter,
    tool,
    versioned,
)
from workflow_agent_react._lossless_json import encode_lossless
from workflow_cas import open_store
from workflow_execute import Engine, create_workflow
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    Answer,
    Effect,
    RoleDefinition,
    ThreadContext,
    ThreadId,
    WorkflowDefinition,
    schema_of,
)
from workflow_reactor.testing import ScriptedLlm, call


class Model(pydantic.BaseModel):
    tags: frozenset[int] = pydantic.Field(alias="t")
    ratio: float = 1.0


class Root(pydantic.RootModel[list[set[int]]]):
    pass


class Struct(msgspec.Struct, rename="upper"):
    tags: set[int]


COLLIDING = [0, 8, 16]
"""In a set of eight places they stand in the order in which they were put in."""


@pytest.mark.parametrize(
    ("type_", "source", "sorted_"),
    [
        (set[int], "%s", "[0,16,8]"),
        (list[set[int]], "[%s,[1]]", "[[0,16,8],[1]]"),
        (dict[str, set[int]], '{"k":%s}', '{"k":[0,16,8]}'),
        (Model, '{"t":%s,"ratio":1.0}', '{"t":[0,16,8],"ratio":1.0}'),
        (Root, "[%s]", "[[0,16,8]]"),
        (Struct, '{"TAGS":%s}', '{"TAGS":[0,16,8]}'),
        (list[int], "%s", None),
    ],
)
def test_sets_are_written_in_one_order_and_lists_in_their_own(
    type_: Any, source: str, sorted_: str | None
) -> None:
    for order in permutations(COLLIDING):
        written = source % json.dumps(order, separators=(",", ":"))
        value = schema_of(type_).validate_json(written)

        assert encode_lossless(schema_of(type_), value).decode() == (sorted_ or written)


paid: list[set[str]] = []
CLERK: RoleDefinition[Any] = RoleDefinition(name="clerk", system_prompt="Pay.", schema=set[str])
NAMES = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"]


@tool(effect=Effect.UNSAFE)
def pay(names: set[str]) -> str:
    """Pay."""
    paid.append(names)
    return "paid"


def ask(call: ProposedCall, ctx: ThreadContext) -> Decision:
    return Ask("Really?")


async def go_on(path: str, thread_id: str) -> None:
    """Start a thread, or answer what it asks and resume it: in a process of its own."""
    replies = [call("resolve", value=NAMES)] if thread_id else [call("pay", names=NAMES)]
    config = ReactAdapterConfig(llm=ScriptedLlm(replies), toolset=pay, guards=[versioned(ask, "1")])
    definition = WorkflowDefinition(table={START: CLERK, CLERK: END})
    run = create_workflow(definition, AdapterBinding(create_react_adapter(config)))
    async with open_store(Path(path)) as store:
        engine = Engine(store)
        if thread_id:
            for key in await engine.questions(ThreadId(thread_id)):
                await engine.answer(ThreadId(thread_id), key, Answer(approved=True))
            result = await engine.resume(run, ThreadId(thread_id))
        else:
            result = await engine.start(run, "Pay.")
        if result.state == "completed":
            await engine.replay(run, result.thread_id)
    sys.stdout.write(f"{result.thread_id} {result.state} {len(paid)}")


def test_an_approved_call_with_a_set_runs_in_another_process(tmp_path: Path) -> None:
    thread_id, ends = "", list[str]()
    for seed in ("1", "2", "3"):
        done = subprocess.run(
            [sys.executable, __file__, str(tmp_path / "store.sqlite3"), thread_id],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        thread_id, _, end = done.stdout.partition(" ")
        ends.append(end)

    assert ends == ["suspended 0", "suspended 1", "completed 0"]


if __name__ == "__main__":
    anyio.run(go_on, sys.argv[1], sys.argv[2])
