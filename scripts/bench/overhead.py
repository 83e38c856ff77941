"""Measure the loop's own cost: against a hand-written httpx + msgspec loop on one scripted server.

    uv run python scripts/bench/overhead.py [--repeats N] [--only NAME …]

The server is a process of its own that answers at once (or after 100 ms where threads overlap) with
one tool call a round and `resolve` in the end. What is measured is the CPU time of this process, or
wall time where many threads wait at once. The floor holds the history as a list, encodes it each
round, posts it with `httpx.AsyncClient`, decodes the reply by a typed decoder and runs the call:
what one would write by hand, without retries, journal, checks or events. Importing is measured in
processes of their own, against `import httpx, msgspec`.
"""

from __future__ import annotations

import argparse
import cProfile
import functools
import gc
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx
import msgspec

from workflow_agent_react import ReactAdapterConfig, create_react_adapter
from workflow_cas import open_store
from workflow_execute import Engine, create_workflow, run_workflow
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    Effect,
    RoleDefinition,
    StartStep,
    ThreadContext,
    ThreadId,
    WorkflowDefinition,
)
from workflow_reactor import LlmProvider, ToolCall, ToolDefinition

ROUNDS = 10
LONG_ROUNDS, WINDOW, LONG_RESULT = 300, 50, " lorem ipsum" * 80
THREADS = (100, 500)
DELAY_MS = 100

SERVER = '''
import asyncio, json, resource, sys
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

def reply(name, arguments):
    call = {"id": "k", "type": "function", "function": {"name": name, "arguments": arguments}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    body = json.dumps({"id": "r", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [choice], "usage": usage})
    head = "HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\ncontent-length: %d\\r\\n\\r\\n"
    return (head % len(body) + body).encode()

DONE = reply("resolve", '{"answer": 42}')

class Endpoint(asyncio.Protocol):
    """`/<rounds>/<delay in ms>/…`; the n-th request of a connection gets the n-th reply."""
    def connection_made(self, transport):
        self.transport, self.buffer, self.count = transport, b"", 0
    def data_received(self, data):
        self.buffer += data
        head, found, body = self.buffer.partition(b"\\r\\n\\r\\n")
        if not found:
            return
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\\r\\n")[0])
        if len(body) < length:
            return
        self.buffer = b""
        rounds, delay_ms = map(int, head.split(b" ", 2)[1].split(b"/")[1:3])
        self.count += 1
        last = self.count > rounds
        answer = DONE if last else reply("add", json.dumps({"a": self.count, "b": 2}))
        self.count = 0 if last else self.count
        loop = asyncio.get_running_loop()
        loop.call_later(delay_ms / 1000, self.transport.write, answer)

async def main():
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Endpoint, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
'''


@dataclass
class Answer:
    """What the role resolves to."""

    answer: int


ADD = ToolDefinition(
    name="add",
    description="Add two integers.",
    parameters={
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
    effect=Effect.READ,
)
ROLE = RoleDefinition(name="counter", description="Counts.", system_prompt="Count.", schema=Answer)
DEFINITION = WorkflowDefinition(
    description="Counting.",
    table={START: ROLE, ROLE: END},
)


class Sum(msgspec.Struct):
    """Arguments of `add`."""

    a: int
    b: int


_SUM = msgspec.json.Decoder(Sum)


async def add(call: ToolCall, ctx: ThreadContext) -> str:
    """The one tool."""
    del ctx
    sum = _SUM.decode(call.arguments)
    return str(sum.a + sum.b)


# -- the floor


class _Function(msgspec.Struct):
    name: str
    arguments: str


class _Call(msgspec.Struct):
    id: str
    function: _Function


class _Message(msgspec.Struct):
    content: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(msgspec.Struct):
    message: _Message


class _Reply(msgspec.Struct):
    choices: list[_Choice]


_REPLY = msgspec.json.Decoder(_Reply)
_ANSWER = msgspec.json.Decoder(Answer)
_encode = msgspec.json.Encoder().encode
_TLS = httpx.create_ssl_context()  # making one takes 20 ms, which no careful hand would pay twice


async def floor(url: str, marks: list[float] | None = None, client: Any = None) -> Answer:
    """A tool loop by hand."""
    tools = [msgspec.json.decode(ADD.json)]
    messages: list[Any] = [
        {"role": "system", "content": "Count."},
        {"role": "user", "content": "Go."},
    ]
    own = httpx.AsyncClient(timeout=60, verify=_TLS) if client is None else client
    try:
        while True:
            body = _encode({"model": "m", "tools": tools, "messages": messages})
            response = await own.post(
                f"{url}/chat/completions",
                content=body,
                headers={"content-type": "application/json", "authorization": "Bearer k"},
            )
            message = _REPLY.decode(response.content).choices[0].message
            messages.append(message)
            for call in message.tool_calls or ():
                if call.function.name == "resolve":
                    return _ANSWER.decode(call.function.arguments)
                sum = _SUM.decode(call.function.arguments)
                text = str(sum.a + sum.b) + ("" if marks is None else LONG_RESULT)
                result = {"role": "tool", "tool_call_id": call.id, "content": text}
                messages.append(result)
            if marks is not None:
                marks.append(time.process_time())
    finally:
        if client is None:
            await own.aclose()


# -- ours


def adapter(url: str, handler: Any = add, max_rounds: int = ROUNDS + 1) -> Any:
    """The ReAct adapter as anyone makes it."""
    provider = LlmProvider(base_url=url, model="m")
    config = ReactAdapterConfig(
        provider=provider, tools=[ADD], tool_handler=handler, max_rounds=max_rounds
    )
    return create_react_adapter(config)


async def loop_alone(url: str) -> None:
    """One turn of a role, without an engine."""
    start = StartStep(prompt="Go.", workspace=Path("/"), timestamp_ms=0)
    ctx = ThreadContext(thread_id=ThreadId("T"), start=start)
    assert await adapter(url)("Count.", Answer)(ctx) == Answer(42)


def workflow(url: str, **more: Any) -> Any:
    """A workflow of that one role."""
    return create_workflow(DEFINITION, AdapterBinding(adapter(url, **more)))


async def in_memory(url: str) -> None:
    """A whole thread on a store in memory."""
    assert (await run_workflow(workflow(url), "Go.")).value == Answer(42)


# -- measuring

Run = Callable[[str], Awaitable[object]]


async def cpu_ms(run: Run, url: str, repeats: int) -> list[float]:
    """CPU milliseconds of this process for each of so many runs, after three to warm up."""
    for _ in range(3):
        await run(url)
    times: list[float] = []
    for _ in range(repeats):
        gc.collect()
        began = time.process_time()
        await run(url)
        times.append((time.process_time() - began) * 1000)
    return times


async def calls_a_round(run: Run, url: str) -> float:
    """Function calls that the profiler counts, C ones included, for each model call."""
    await run(url)
    profile = cProfile.Profile()
    profile.enable()
    await run(url)
    profile.disable()
    return sum(entry.callcount for entry in profile.getstats()) / (ROUNDS + 1)


def spread(times: list[float]) -> str:
    """Median with the quartiles."""
    low, middle, high = statistics.quantiles(times, n=4)
    return f"{middle:8.2f}  ({low:.2f} … {high:.2f})"


async def overhead(base: str, repeats: int) -> None:
    """Ten rounds of one call."""
    url = f"{base}/{ROUNDS}/0"
    print(f"\n{ROUNDS} rounds x 1 call, CPU ms: median (quartiles)")
    with tempfile.TemporaryDirectory() as folder:
        async with open_store(Path(folder) / "store.db") as store:

            async def durable(url: str) -> None:
                assert (await Engine(store).start(workflow(url), "Go.")).value == Answer(42)

            runs: dict[str, Run] = {
                "floor": floor,
                "loop alone": loop_alone,
                "engine, memory": in_memory,
                "engine, SQLite": durable,
            }
            times: dict[str, list[float]] = {name: [] for name in runs}
            for _ in range(4):  # interleaved, so that a busy machine is unfair to all alike
                for name, run in runs.items():
                    times[name] += await cpu_ms(run, url, max(1, repeats // 4))
            base_ms = statistics.median(times["floor"])
            for name, run in runs.items():
                times_floor = statistics.median(times[name]) / base_ms
                calls = await calls_a_round(run, url)
                line = f"{name:16}{spread(times[name])}  x{times_floor:.2f}"
                print(f"  {line}  {calls:6.0f} calls a round")


async def long(base: str, repeats: int) -> None:
    """Three hundred rounds: what a round costs at the end against the beginning."""
    url = f"{base}/{LONG_ROUNDS}/0"
    print(f"\n{LONG_ROUNDS} rounds, each result {len(LONG_RESULT)} characters")
    print(f"CPU of the last {WINDOW} against the first {WINDOW}: median (least … most)")
    floors: list[float] = []
    ours: list[float] = []
    durables: list[float] = []
    for _ in range(max(2, repeats // 8)):
        marks = [time.process_time()]
        await floor(url, marks)
        floors.append(ratio(marks))
        marks = [time.process_time()]
        await run_workflow(workflow(url, handler=marking(marks), max_rounds=LONG_ROUNDS + 1), "Go.")
        ours.append(ratio(marks))
        with tempfile.TemporaryDirectory() as folder:
            async with open_store(Path(folder) / "store.db") as store:
                marks = [time.process_time()]
                made = workflow(url, handler=marking(marks), max_rounds=LONG_ROUNDS + 1)
                await Engine(store).start(made, "Go.")
                durables.append(ratio(marks))
    for name, ratios in {"floor": floors, "memory": ours, "SQLite": durables}.items():
        print(
            f"  {name:16}{statistics.median(ratios):8.2f}  ({min(ratios):.2f} … {max(ratios):.2f})"
        )


def marking(marks: list[float]) -> Any:
    """The tool, which notes the CPU time of each round."""

    async def handler(call: ToolCall, ctx: ThreadContext) -> str:
        marks.append(time.process_time())
        return await add(call, ctx) + LONG_RESULT

    return handler


def ratio(marks: list[float]) -> float:
    """The last rounds against the first; the very first few pay for connecting."""
    skip = 5
    first = marks[skip + WINDOW] - marks[skip]
    return (marks[-1] - marks[-1 - WINDOW]) / first


async def threads(base: str, *, one_pool: bool) -> None:
    """Many threads at once, each reply 100 ms away."""
    url = f"{base}/{ROUNDS}/{DELAY_MS}"
    ideal = (ROUNDS + 1) * DELAY_MS / 1000
    print(f"\nthreads at once x {ROUNDS} rounds, {DELAY_MS} ms a reply (ideal {ideal:.1f} s)")
    print(f"  {'':24}{'wall s':>8}{'CPU s':>8}")
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    for count in THREADS:
        if one_pool:
            async with httpx.AsyncClient(timeout=300, limits=limits) as client:
                await together(
                    f"floor, one pool, {count}", count, lambda: floor(url, client=client)
                )
        await together(f"memory, {count}", count, lambda: in_memory(url))
        with tempfile.TemporaryDirectory() as folder:
            async with open_store(Path(folder) / "store.db") as store:
                engine = Engine(store)
                durable = functools.partial(engine.start, workflow(url), "Go.")
                await together(f"SQLite, {count}", count, durable)


async def together(name: str, count: int, run: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Run so many at once and print how long it took."""
    gc.collect()
    began, cpu_began = time.perf_counter(), time.process_time()
    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            tasks.start_soon(run)
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu_began
    print(f"  {name:24}{wall:8.2f}{cpu:8.2f}")


IMPORTS = ("httpx, msgspec", "workflow_reactor", "workflow_agent_react", "workflow_execute")


def imports(repeats: int) -> None:
    """What importing costs: CPU and wall milliseconds of a process that does nothing else."""
    cpu: dict[str, list[float]] = {names: [] for names in IMPORTS}
    wall: dict[str, list[float]] = {names: [] for names in IMPORTS}
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(repeats + 1):  # interleaved; the first of each may have to compile
        for names in IMPORTS:
            began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, "-c", f"import {names}"], check=True, env=env)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            cpu[names].append(seconds * 1000)
            wall[names].append((time.perf_counter() - began) * 1000)
    print("\nimport in a new process, ms: CPU and wall, median (quartiles)")
    floor_ms = statistics.median(cpu[IMPORTS[0]][1:])
    for names in IMPORTS:
        ratio = statistics.median(cpu[names][1:]) / floor_ms
        print(f"  {names:24}{spread(cpu[names][1:])}  x{ratio:.2f}  {spread(wall[names][1:])}")


@asynccontextmanager
async def scripted_server() -> AsyncGenerator[str]:
    """Start the server's process and give its base URL."""
    with subprocess.Popen(  # noqa: ASYNC220 - a benchmark waits for its server
        [sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.terminate()


async def main(repeats: int, only: list[str]) -> None:
    """Print everything, and on what machine."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    versions = f"Python {platform.python_version()}, httpx {httpx.__version__}"
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}, {versions}")
    if "import" in only:
        imports(repeats)
    async with scripted_server() as base:
        if "overhead" in only:
            await overhead(base, repeats)
        if "long" in only:
            await long(base, repeats)
        if "threads" in only or "pool" in only:
            await threads(base, one_pool="pool" in only)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=40)
    names = ["import", "overhead", "long", "threads", "pool"]
    parser.add_argument("--only", nargs="+", choices=names, default=names[:4])
    arguments = parser.parse_args()
    anyio.run(main, arguments.repeats, arguments.only)
