"""A workflow whose every effect leaves a trace, and ways to die anywhere in it.

Three roles of the real ReAct adapter. The model is scripted in this process: what it says follows
from the conversation alone, and it writes down each request. Tools of each effect class write into
a ledger. When the model is told that an outcome is unknown, it looks into the ledger first.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, Unpack

from typing_extensions import TypeForm

from workflow_agent_react import ReactAdapterConfig, Toolset, create_react_adapter
from workflow_cas import Entry, GcReport, Node, RefMove, Store, Stored, VerifyReport
from workflow_execute import Asking, Engine, Workflow, create_workflow
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    AdapterFn,
    Answer,
    Effect,
    Event,
    Hash,
    Journal,
    Question,
    RoleDefinition,
    RoleFn,
    RunOptions,
    ThreadContext,
    WorkflowDefinition,
)
from workflow_reactor import ToolCall, ToolDefinition
from workflow_reactor.testing import ScriptedLlm, function, say
from workflow_workspace import Versioned

T = TypeVar("T")

NUMBER: dict[str, Any] = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}
TOOLS = [
    ToolDefinition(name="look", description="", parameters=NUMBER, effect=Effect.READ),
    ToolDefinition(name="put", description="", parameters=NUMBER, effect=Effect.REPEATABLE),
    ToolDefinition(name="charge", description="", parameters=NUMBER, effect=Effect.UNSAFE),
]
PLANS: dict[str, list[list[tuple[str, int]]]] = {
    "planner": [[("look", 1), ("look", 2), ("look", 3)], [("put", 1)], [("resolve", 3)]],
    "worker": [
        [("charge", 1)], [("look", 4), ("charge", 2)], [("put", 2), ("put", 3)],
        [("charge", 3), ("look", 5), ("look", 6)], [("charge", 4)],
        [("put", 4), ("charge", 6)], [("resolve", 4)],
    ],
    "checker": [[("look", 7), ("look", 8)], [("charge", 5)], [("resolve", 1)]],
}  # fmt: skip
CHARGES = [1, 2, 3, 4, 5, 6]
PUTS = [1, 2, 3, 4]
ROUNDS = sum(map(len, PLANS.values()))
FINAL = [3, 4, 1]


@dataclass(frozen=True)
class Traces:
    """The files that outlive each process."""

    folder: Path

    @property
    def store(self) -> Path:
        return self.folder / "store.sqlite3"

    def add(self, name: str, line: str) -> None:
        """Append a line in one write, as the outside world would keep it."""
        file = os.open(self.folder / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, f"{line}\n".encode())
        finally:
            os.close(file)

    def lines(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


class Deadly:
    """Counts boundaries, and dies at one of them."""

    def __init__(self, at: int = 0) -> None:
        self.at = at
        self.passed = 0

    def boundary(self) -> None:
        self.passed += 1
        if self.passed == self.at:
            os.kill(os.getpid(), signal.SIGKILL)


class Model(ScriptedLlm):
    """Says what the plan of its role has next."""

    def __init__(self, traces: Traces) -> None:
        super().__init__([])
        self._traces = traces

    def answer(self, request: dict[str, Any]) -> bytes:
        messages: list[dict[str, Any]] = request["messages"]
        role = re.findall(r"You are the (\w+)", messages[0]["content"])[0]
        replies = [m for m in messages if m["role"] == "assistant"]
        self._traces.add("requests", f"{role}/llm/{len(replies)}")
        calls = self._next(role, messages)
        return say(
            None,
            *(
                function(name, id=f"k{i}", **({"value": n} if name == "resolve" else {"n": n}))
                for i, (name, n) in enumerate(calls)
            ),
        )

    def _next(self, role: str, messages: Sequence[dict[str, Any]]) -> list[tuple[str, int]]:
        """Go on with the plan, unless an outcome has to be looked after first."""
        steps = 0
        doubts: list[int] = []
        calls: list[tuple[str, int]] = []
        results: list[str] = []
        waiting: list[list[tuple[str, int]]] = [*PLANS[role]]
        for message in [*messages, {"role": "assistant"}]:
            if message["role"] == "tool":
                results.append(message["content"])
            if message["role"] != "assistant":
                continue
            for (name, n), result in zip(calls, results, strict=True):
                if name == "charge" and "never recorded" in result:
                    doubts.append(n)
                elif name == "look" and n > 100 and result == "absent":
                    waiting.insert(steps, [("charge", n - 100)])
            if doubts:
                waiting.insert(steps, [("look", 100 + doubts.pop(0))])
            calls, results = waiting[steps], []
            steps += 1
        return calls


def tools(traces: Traces) -> Toolset:
    """Tools that write down what they do."""

    async def handle(call: ToolCall, ctx: ThreadContext) -> str:
        n = int(re.findall(r"\d+", call.arguments)[0])
        if call.name == "look" and n > 100:
            return "present" if f"charge {n - 100}" in traces.lines("ledger") else "absent"
        key = f" {ctx.thread_id}/{len(ctx.steps)}/{call.id}" if call.name == "put" else ""
        traces.add("ledger", f"{call.name} {n}{key}")
        return f"{call.name} {n} is done"

    return Toolset(tuple(TOOLS), handle)


class DeadlyJournal:
    """Dies around journal operations and around the effects inside them."""

    def __init__(self, inner: Journal, deadly: Deadly) -> None:
        self._inner = inner
        self._deadly = deadly

    async def run(
        self,
        key: str,
        perform: Callable[[], Awaitable[T]],
        **options: Unpack[RunOptions[T]],
    ) -> T:
        async def deadly() -> T:
            self._deadly.boundary()
            value = await perform()
            self._deadly.boundary()
            return value

        self._deadly.boundary()
        value = await self._inner.run(key, deadly, **options)
        self._deadly.boundary()
        return value

    async def ask(self, key: str, question: Question) -> Answer:
        self._deadly.boundary()
        answer = await self._inner.ask(key, question)
        self._deadly.boundary()
        return answer

    async def note(self, event: Event) -> None:
        await self._inner.note(event)


VERSIONED = Versioned(exclude=("/store.sqlite3*",))
"""The engine doesn't see where a `DeadlyStore` is: it would keep the store in itself."""


class DeadlyStore(Store):
    """Dies before and after commits."""

    def __init__(self, inner: Store, deadly: Deadly) -> None:
        self._inner = inner
        self._deadly = deadly

    async def commit(
        self,
        objects: Sequence[Stored],
        moves: Sequence[RefMove] = (),
        entries: Sequence[Entry] = (),
    ) -> None:
        self._deadly.boundary()
        await self._inner.commit(objects, moves, entries)
        self._deadly.boundary()

    async def chain(self, last: Hash, ends: Callable[[Node], bool]) -> list[Node]:
        return await self._inner.chain(last, ends)

    async def entries(self, **wanted: Any) -> list[Entry]:
        return await self._inner.entries(**wanted)

    async def get(self, hash: Hash) -> Stored:
        return await self._inner.get(hash)

    async def get_many(self, hashes: Sequence[Hash]) -> list[Stored]:
        return await self._inner.get_many(hashes)

    async def ref(self, name: str) -> Hash | None:
        return await self._inner.ref(name)

    async def refs(self, prefix: str = "") -> dict[str, Hash]:
        return await self._inner.refs(prefix)

    async def find(self, prefix: str) -> Hash:
        return await self._inner.find(prefix)

    def watch(self, prefix: str = "") -> AbstractAsyncContextManager[Any]:
        return self._inner.watch(prefix)

    async def verify(self) -> VerifyReport:
        return await self._inner.verify()

    async def collect_garbage(self, *, keep_newer_than_s: float, dry_run: bool = False) -> GcReport:
        return await self._inner.collect_garbage(
            keep_newer_than_s=keep_newer_than_s, dry_run=dry_run
        )


def workflow(traces: Traces, deadly: Deadly) -> Workflow:
    """Planner, worker and checker; the checker asks a person first."""
    adapter = create_react_adapter(
        ReactAdapterConfig(llm=Model(traces), toolset=tools(traces), max_rounds=30)
    )

    def mortal(inner: AdapterFn) -> AdapterFn:
        def adapter(prompt: str, schema: TypeForm[T]) -> RoleFn[T]:
            async def role(ctx: ThreadContext) -> T:
                ctx = replace(ctx, journal=DeadlyJournal(ctx.journal, deadly))
                if "checker" in prompt:
                    await ctx.journal.ask("go", Question(text="Go on?"))
                return await inner(prompt, schema)(ctx)

            return role

        return adapter

    roles = [
        RoleDefinition(name=name, system_prompt=f"You are the {name}.", schema=int)
        for name in PLANS
    ]
    return create_workflow(
        WorkflowDefinition(
            description="leaves traces",
            table={
                START: roles[0],
                roles[0]: roles[1],
                roles[1]: roles[2],
                roles[2]: END,
            },
        ),
        AdapterBinding(mortal(adapter)),
    )


def engine(store: Store, traces: Traces, deadly: Deadly) -> Engine:
    """An engine whose person says yes, once."""

    async def asker(asking: Asking) -> Answer:
        deadly.boundary()
        traces.add("asked", asking.key)
        return Answer(approved=True)

    return Engine(
        DeadlyStore(store, deadly), locks=traces.folder / "locks", asker=asker, versions=VERSIONED
    )
