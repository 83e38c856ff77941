"""Facts that a person writes, beside others who write the same ones."""

import anyio

from workflow_cas import MemoryStore
from workflow_execute import read_facts, write_facts
from workflow_protocol import Fact, fact_ref


async def test_who_writes_the_same_fact_at_the_same_time_is_not_refused() -> None:
    store, ref = MemoryStore(), fact_ref("n", "k")
    values = [f"{number}" for number in range(8)]

    async def write(value: str) -> None:
        await write_facts(store, {ref: Fact(key="k", value=value, thread="", step=0, at_ms=0)})

    async with anyio.create_task_group() as group:
        for value in values:
            group.start_soon(write, value)

    assert (await read_facts(store, ref))[ref].value in values
    await write_facts(store, {ref: None})
    assert await read_facts(store, ref) == {}
