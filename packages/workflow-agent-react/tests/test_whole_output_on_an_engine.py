"""The whole output of a command: an object of the store, read on after a resume and in a replay."""

import re
from collections.abc import Sequence
from pathlib import Path

from workflow_agent_react import ReactAdapterConfig, create_react_adapter, workspace_tools
from workflow_cas import Store, open_store
from workflow_execute import Engine, Workflow, create_workflow
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    Hash,
    RoleDefinition,
    WorkflowDefinition,
)
from workflow_reactor.testing import Reply, Request, ScriptedLlm, call

ROLE = RoleDefinition(name="builder", description="Builds.", system_prompt="Build.", schema=str)
DEFINITION = WorkflowDefinition(
    description="Building.",
    table={START: ROLE, ROLE: END},
)
COUNT = call("shell_exec", command="seq 1 700000")  # 4.8 MB
NUMBERS = "".join(f"{n}\n" for n in range(1, 700_001))


class Interrupted(Exception):
    """Stops the script of a model where a process might die."""


def workflow(replies: Sequence[Reply]) -> tuple[Workflow, ScriptedLlm]:
    llm = ScriptedLlm(replies)
    config = ReactAdapterConfig(llm=llm, toolset=workspace_tools(sandbox="off"))
    return create_workflow(DEFINITION, AdapterBinding(create_react_adapter(config))), llm


def read_the_middle(request: Request) -> bytes:
    found = re.search(r'read_result with hash "(\w+)"', str(request["messages"]))
    assert found is not None
    return call("read_result", hash=found[1], offset=2_000_000)


def interrupt(request: Request) -> bytes:
    raise Interrupted


async def test_the_middle_is_read_after_a_resume_and_in_a_replay(tmp_path: Path) -> None:
    done = call("resolve", value="done")
    async with open_store(tmp_path / "store.sqlite3") as store:
        engine = Engine(store)
        begun, _ = workflow([COUNT, interrupt])
        failed = await engine.start(begun, "Count.", workspace=tmp_path)
        assert failed.state == "failed"

        resumed, llm = workflow([read_the_middle, done])
        result = await engine.resume(resumed, failed.thread_id)

        assert result.value == "done"
        page = llm.requests[1]["messages"][-1]["content"]
        assert page.startswith(NUMBERS[2_000_000:2_015_900])
        assert max(await record_sizes(store)) < 20_000
        await engine.replay(resumed, failed.thread_id)
    assert (tmp_path / "store.sqlite3").stat().st_size < len(NUMBERS) / 2


async def record_sizes(store: Store) -> list[int]:
    pending: list[Hash] = list((await store.refs("thread/")).values())
    sizes: list[int] = []
    while pending:
        found = await store.get(pending.pop())
        pending.extend(found.refs)
        if found.kind == "node":
            sizes.append(len(found.data))
    return sizes
