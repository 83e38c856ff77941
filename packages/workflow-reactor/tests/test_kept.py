from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest

from workflow_reactor import keep_open, kept

events: list[str] = []


@pytest.fixture(autouse=True)
def nothing_happened() -> None:
    events.clear()


@asynccontextmanager
async def lamp(name: str) -> AsyncGenerator[str]:
    events.append(f"on {name}")
    try:
        yield name
    finally:
        events.append(f"off {name}")


async def use(name: str) -> str:
    async with kept(name, lambda: lamp(name)) as value:
        return value


async def test_what_is_kept_closes_with_its_block_or_with_the_outermost_keep_open() -> None:
    assert await use("a") == "a"
    assert events == ["on a", "off a"]
    events.clear()
    async with keep_open():
        async with keep_open():
            assert [await use("a"), await use("b"), await use("a")] == ["a", "b", "a"]
        assert events == ["on a", "on b"]
    assert sorted(events[2:]) == ["off a", "off b"]


async def test_two_things_open_at_the_same_time_and_each_once() -> None:
    waiting = anyio.Event()

    @asynccontextmanager
    async def slow() -> AsyncGenerator[str]:
        waiting.set()
        await anyio.wait_all_tasks_blocked()
        yield "slow"

    got: list[str] = []
    async with keep_open(), anyio.create_task_group() as group:

        async def take() -> None:
            async with kept("slow", slow) as value:
                got.append(value)

        group.start_soon(take)
        group.start_soon(take)
        await waiting.wait()
        assert await use("quick") == "quick"
    assert got == ["slow", "slow"]


@pytest.mark.parametrize("error", [KeyError("mine"), KeyboardInterrupt(), SystemExit(3)])
async def test_what_the_block_raises_comes_out_as_it_is(error: BaseException) -> None:
    async def run() -> None:
        async with keep_open():
            await use("a")
            raise error

    with pytest.raises(type(error)) as caught:
        await run()
    assert caught.value is error
    assert events == ["on a", "off a"]
