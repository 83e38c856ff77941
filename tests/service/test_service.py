"""The service of docs/services.md: real uvicorn processes over one store, killed and stopped."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from workflow_reactor.testing import LoopbackServer, Reply, Wire, loopback_server, say

ROOT = Path(__file__).parent.parent.parent
EXAMPLE = ROOT / "docs/examples/service.py"
DRAFT = say('"Octopuses think with their arms."')
GOOD = say('{"good": true, "advice": ""}')
NEVER = Wire(then="stall")
WAIT_S = 15

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@dataclass
class Service:
    """One process of the service."""

    process: subprocess.Popen[str]
    client: httpx.AsyncClient

    async def order(self, topic: str, key: str) -> httpx.Response:
        return await self.client.post(
            "/articles", json={"topic": topic}, headers={"idempotency-key": key}
        )

    async def show(self, id: str) -> dict[str, Any]:
        return (await self.client.get(f"/articles/{id}")).json()

    async def events(self, id: str) -> AsyncGenerator[dict[str, Any]]:
        async with self.client.stream("GET", f"/articles/{id}/events", timeout=WAIT_S) as reply:
            assert reply.status_code == 200
            async for line in reply.aiter_lines():
                if line:
                    yield json.loads(line.removeprefix("data: "))

    async def last_event(self, id: str) -> dict[str, Any]:
        return [each async for each in self.events(id)][-1]

    async def until_state(self, id: str, state: str) -> None:
        """Follow the thread, run by run, until it is in a state."""
        with anyio.fail_after(WAIT_S):
            while (await self.show(id))["state"] != state:
                await self.last_event(id)

    def stop(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(WAIT_S)


class Place:
    """A folder with the example, a store and the address of a model, and the processes there."""

    def __init__(self, folder: Path, model: LoopbackServer, stack: AsyncExitStack) -> None:
        self.model = model
        self._folder = folder
        self._stack = stack
        (folder / "home").mkdir()
        (folder / "home" / "workflow.yaml").write_text(
            "providers:\n  host:\n"
            f"    base_url: http://127.0.0.1:{model.port}/v1\n    api_key: none\n"
            "models:\n  default: host/scripted\n",
            encoding="utf-8",
        )

    async def start(self) -> Service:
        """Start a process of the service on a free port, and wait until it listens."""
        command = [sys.executable, "-m", "uvicorn", "service:app", "--app-dir", EXAMPLE.parent]
        settings = {
            "UWF_HOME": str(self._folder / "home"),
            "SERVICE_DATA": str(self._folder / "data"),
            "SERVICE_LOOK_AGAIN_S": "0.2",
        }
        process = subprocess.Popen(  # noqa: ASYNC220 - its output is read in a thread
            [*command, "--port", "0", "--timeout-graceful-shutdown", "1"],
            cwd=self._folder,
            env={**os.environ, **settings},
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        self._stack.callback(_reap, process)
        port = await anyio.to_thread.run_sync(_port, process)
        client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=WAIT_S)
        return Service(process, await self._stack.enter_async_context(client))

    async def asked(self, count: int) -> None:
        """Wait until the model was asked so often."""
        with anyio.fail_after(WAIT_S):
            while len(self.model.bodies) < count:  # noqa: ASYNC110 - of other processes
                await anyio.sleep(0.01)


def _port(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if found := re.search(r"running on http://127\.0\.0\.1:(\d+)", line):
            return found[1]
    raise AssertionError(said)


def _reap(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    assert process.stderr is not None
    process.stderr.close()


@asynccontextmanager
async def place_with(folder: Path, *replies: Reply | Wire) -> AsyncGenerator[Place]:
    """A place with what its model is going to say."""
    async with loopback_server(replies) as model, AsyncExitStack() as stack:
        yield Place(folder, model, stack)


async def test_a_killed_process_is_survived_by_its_threads_their_keys_and_questions(
    tmp_path: Path,
) -> None:
    async with place_with(tmp_path, DRAFT, NEVER, GOOD) as place:
        first, second = await place.start(), await place.start()

        begun = (await first.order("Octopuses", "k")).json()
        id = begun["id"]
        async with aclosing(second.events(id)) as heard:  # the step, told by the other process
            written = await anext(heard)
        await place.asked(2)
        first.stop(signal.SIGKILL)  # in the middle of the critic's turn
        again = (await second.order("Octopuses", "k")).json()
        await second.until_state(id, "suspended")
        waits = await second.show(id)
        third = await place.start()
        answered = await third.client.post(f"/articles/{id}/answer", json={"approved": True})
        await second.until_state(id, "completed")
        listed = [(await each.client.get("/articles")).json() for each in (second, third)]
        last = (await third.order("Octopuses", "k")).json()

        assert begun["is_new"] is True
        assert (written["event"], written["role"]) == ("RoleFinished", "writer")
        assert again == last == {"id": id, "is_new": False}
        assert waits["questions"] == {"function/publish": "Octopuses think with their arms."}
        assert answered.status_code == 202
        assert [[(each["id"], each["state"]) for each in page] for page in listed] == [
            [(id, "completed")]
        ] * 2
        assert len(place.model.bodies) == 3  # the draft was paid once


async def test_a_service_that_is_told_to_stop_gives_its_threads_to_another_one(
    tmp_path: Path,
) -> None:
    async with place_with(tmp_path, DRAFT, NEVER, GOOD) as place:
        first = await place.start()
        id = (await first.order("Octopuses", "k")).json()["id"]
        await place.asked(2)

        async with aclosing(first.events(id)) as heard:  # somebody listens, and does not hold it up
            await anext(heard)
            with anyio.fail_after(WAIT_S):
                await anyio.to_thread.run_sync(first.stop, signal.SIGTERM)
        second = await place.start()
        await place.asked(3)  # it goes on: it was suspended before, too
        await second.until_state(id, "suspended")
        waits = await second.show(id)

        assert waits["questions"] == {"function/publish": "Octopuses think with their arms."}
        assert len(place.model.bodies) == 3


async def test_an_answer_is_taken_up_though_who_took_it_was_killed(tmp_path: Path) -> None:
    from uwf import Answer, Engine, ThreadId, open_store

    async with place_with(tmp_path, DRAFT, GOOD) as place:
        first = await place.start()
        id = (await first.order("Octopuses", "k")).json()["id"]
        await first.until_state(id, "suspended")
        first.stop(signal.SIGKILL)
        async with open_store(tmp_path / "data/store.sqlite3") as store:
            await Engine(store).answer(ThreadId(id), None, Answer(approved=True))
        second = await place.start()
        await second.until_state(id, "completed")
        twice = await second.client.post(f"/articles/{id}/answer", json={"approved": False})

        assert twice.status_code == 409
        assert "has an answer already: approved" in twice.json()["detail"]


async def test_processes_that_get_the_same_keys_at_once_begin_one_thread_for_each(
    tmp_path: Path,
) -> None:
    keys = [f"key-{number}" for number in range(6)]
    async with place_with(tmp_path, *[NEVER] * len(keys)) as place:
        services = [await place.start(), await place.start()]
        replies: dict[str, list[dict[str, Any]]] = {key: [] for key in keys}

        async def order(service: Service, key: str) -> None:
            replies[key].append((await service.order(key, key)).json())

        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                for key in keys:
                    for service in services * 2:
                        tasks.start_soon(order, service, key)
        await place.asked(len(keys))
        listed = (await services[0].client.get("/articles")).json()

        assert [len({each["id"] for each in of_key}) for of_key in replies.values()] == [1] * len(
            keys
        )
        assert [sum(each["is_new"] for each in of_key) for of_key in replies.values()] == [1] * len(
            keys
        )
        assert len(listed) == len(place.model.bodies) == len(keys)


async def test_what_cannot_be_done_is_said_with_a_status(tmp_path: Path) -> None:
    async with place_with(tmp_path, NEVER) as place:
        service = await place.start()
        id = (await service.order("Octopuses", "k")).json()["id"]
        other = await service.order("Squids", "k")
        bad_key = await service.order("Squids", "a b")
        nothing = await service.client.get("/articles/01UNKNOWN")
        unasked = await service.client.post(f"/articles/{id}/answer", json={"approved": True})
        unheard = await service.client.get("/articles/01UNKNOWN/events")

        codes = [each.status_code for each in (other, bad_key, nothing, unasked, unheard)]
        assert codes == [409, 422, 404, 409, 404]
        assert f"the key 'k' has begun thread {id} with another input" in other.json()["detail"]


def test_the_page_shows_the_example_as_it_is_run() -> None:
    page = (ROOT / "docs/services.md").read_text(encoding="utf-8")

    assert f"```python\n{EXAMPLE.read_text(encoding='utf-8')}```" in page
