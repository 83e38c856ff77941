"""Each begin has one end, and nothing is told twice as new: over generated runs with faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workflow_agent_react import (
    Allow,
    Ask,
    Deny,
    ProposedCall,
    ReactAdapterConfig,
    Toolset,
    create_react_adapter,
    tool,
)
from workflow_cas import Entry, MemoryStore, RefMove, Store, Stored, StoreError, open_store
from workflow_execute import (
    ChildTask,
    Engine,
    ThreadResult,
    Workflow,
    create_supervisor,
    create_workflow,
    read_tree,
    run_children,
)
from workflow_protocol import (
    CALL_FAULTS,
    END,
    START,
    AdapterBinding,
    Answer,
    Effect,
    Event,
    ModelFailed,
    ModelReplied,
    RoleDefinition,
    RoleFinished,
    RoleStarted,
    RoleStopped,
    RoundStarted,
    ThreadContext,
    ThreadEnded,
    ThreadStarted,
    ToolFinished,
    ToolStarted,
    Usage,
    WorkflowDefinition,
)
from workflow_reactor import (
    AssistantMessage,
    Frame,
    Framer,
    Message,
    Profile,
    ProviderRefused,
    RequestOptions,
    ToolDefinition,
    read_reply,
)
from workflow_reactor.testing import call, function, say
from workflow_util_agent import agent_to_adapter

CALLS = ["look", "slow", "boom", "pay", "remove", "nope", "misread", "stop", "read_result"]
REPLY = st.lists(st.sampled_from([*CALLS, "resolve"]), max_size=4)
"""The calls of one reply; none is a plain text."""
SCRIPT = st.lists(REPLY, max_size=3)


GO_ON = call("resolve", decision="continue", reason="")


class Model:
    """An `LlmFn` that replies by the round, and now and then not."""

    profile = Profile()

    def __init__(
        self,
        script: Sequence[Sequence[str]],
        faults: list[str],
        final: bytes = call("resolve", value=1),
    ) -> None:
        self._final = final
        self._script = script
        self._faults = faults
        self._framer = Framer("m", self.profile, provider="here")

    def frame(self, tools: Sequence[ToolDefinition], options: RequestOptions) -> Frame:
        return self._framer.frame(tools, options)

    async def __call__(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition] = (),
        options: RequestOptions | None = None,
        *,
        round: int = 0,
    ) -> AssistantMessage:
        await anyio.lowlevel.checkpoint()
        match self._faults.pop() if self._faults else "":
            case "refuse":
                raise ProviderRefused("no", status=400, attempts=1)
            case "crash":
                raise ZeroDivisionError
            case "hang":
                await anyio.sleep_forever()
            case _:
                pass
        taken = {each for message in messages for each in message.call_ids}
        body = self._reply(round)
        return read_reply(body, self.profile, round=round, tools=tools, taken_ids=taken)

    def _reply(self, round: int) -> bytes:
        if round >= len(self._script):
            return self._final
        names = self._script[round]
        if not names:
            return say("I think.")
        return say(None, *[_call_of(name, at) for at, name in enumerate(names)])


def _call_of(name: str, at: int) -> dict[str, Any]:
    if name == "misread":
        return function("look", id=f"c{at}", wrong=1)
    if name == "resolve":
        return function("resolve", id=f"c{at}", value=1)
    return function(name, id=f"c{at}")


class Failing:
    """A store that fails at one commit."""

    def __init__(self, inner: Store, fails_at: int) -> None:
        self._inner = inner
        self.left = fails_at

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def commit(
        self,
        objects: Sequence[Stored],
        moves: Sequence[RefMove] = (),
        entries: Sequence[Entry] = (),
    ) -> None:
        self.left -= 1
        if self.left == 0:
            raise StoreError("the disk is gone")
        await self._inner.commit(objects, moves, entries)


class Bench:
    """A workflow of a role with tools, one with children, and an agent whose words are read."""

    def __init__(self, scripts: Sequence[Sequence[Sequence[str]]], faults: list[str]) -> None:
        self.scope = anyio.CancelScope()
        self._faults = faults
        self._stopped = False
        own, first, second = scripts
        self.children = [self._one_role(first, "a"), self._one_role(second, "b")]
        roles = [self._role(name) for name in ("works", "divides", "writes")]
        extract = Model([["nope"], []], faults)

        async def agent(ctx: ThreadContext, prompt: str) -> str:
            return "1"

        self.workflow = create_workflow(
            WorkflowDefinition(
                table=self._in_turn(roles),
            ),
            AdapterBinding(
                self._react(own),
                overrides={
                    "divides": self._dividing,
                    "writes": agent_to_adapter(agent, extract),
                },
            ),
        )

    def _role(self, name: str) -> RoleDefinition[int]:
        return RoleDefinition(name=name, system_prompt=name, schema=int)

    def _in_turn(
        self, roles: Sequence[RoleDefinition[Any]]
    ) -> dict[RoleDefinition[Any] | str, RoleDefinition[Any] | str]:
        places: list[RoleDefinition[Any] | str] = [START, *roles, END]
        return dict(pairwise(places))

    def _one_role(self, script: Sequence[Sequence[str]], name: str) -> Workflow:
        role = self._role(name)
        return create_workflow(
            WorkflowDefinition(
                table=self._in_turn([role]),
            ),
            AdapterBinding(self._react(script)),
        )

    def _dividing(self, prompt: str, schema: Any) -> Any:
        async def role(ctx: ThreadContext) -> Any:
            tasks = [
                ChildTask(name=f"child{at}", workflow=workflow, input="go", key=str(at))
                for at, workflow in enumerate(self.children)
            ]
            return len(await run_children(ctx, tasks))

        return role

    def _react(self, script: Sequence[Sequence[str]]) -> Any:
        @tool(effect=Effect.READ)
        async def look() -> str:
            """Look."""
            await anyio.lowlevel.checkpoint()
            return "seen " * 500

        @tool(effect=Effect.READ, timeout_s=0.001)
        async def slow() -> str:
            """Take too long."""
            await anyio.sleep_forever()
            return ""

        @tool(effect=Effect.READ)
        async def boom() -> str:
            """Fail."""
            raise LookupError("boom")

        @tool(effect=Effect.UNSAFE)
        async def pay() -> str:
            """Pay."""
            return "paid"

        @tool(effect=Effect.UNSAFE)
        async def remove() -> str:
            """Remove."""
            return "removed"

        @tool(effect=Effect.UNSAFE)
        async def stop() -> str:
            """Cancel the run, the first time."""
            if not self._stopped:
                self._stopped = True
                self.scope.cancel()
                await anyio.sleep_forever()
            return "on"

        def guard(proposed: ProposedCall, ctx: ThreadContext) -> Allow | Ask | Deny:
            if proposed.name == "pay":
                return Ask("Pay?")
            return Deny("no") if proposed.name == "remove" else Allow()

        return create_react_adapter(
            ReactAdapterConfig(
                llm=Model(script, self._faults),
                toolset=Toolset.combine(look, slow, boom, pay, remove, stop),
                guards=[guard],
                max_rounds=8,
                max_result_chars=1000,
            )
        )


async def run_to_the_end(store: Store, bench: Bench, faults: list[str], fails_at: int) -> Any:
    """Start a thread, and resume it until it is completed; the events of each run."""
    runs: list[list[Event]] = [[]]

    def engine_on(store: Store) -> Engine:
        return Engine(
            store,
            observer=lambda event: runs[-1].append(event),
            supervisor=create_supervisor(Model([["read_step"]], faults, GO_ON)),
            supervise_every=1,
        )

    result: ThreadResult | None = None
    thread_id: Any = None
    for number in range(12):
        broken = cast("Store", Failing(store, fails_at)) if number == 0 else store
        engine = engine_on(broken)
        bench.scope = anyio.CancelScope()
        watchdog = anyio.move_on_after(0.5 if "hang" in faults else 20)
        with bench.scope, watchdog:
            try:
                if thread_id is None:
                    result = await engine.start(bench.workflow, "go")
                else:
                    result = await engine.resume(bench.workflow, thread_id)
            except StoreError:
                result = None
        started = [each for each in runs[-1] if isinstance(each, ThreadStarted)]
        if started:
            thread_id = started[0].thread
        if result is not None and result.state == "completed":
            return runs, thread_id
        if thread_id is not None:
            for part in (await read_tree(store, thread_id)).walk():
                for key in await engine_on(store).questions(part.thread.thread_id):
                    answer = Answer(approved=key[-1] in "01234567")
                    await engine_on(store).answer(part.thread.thread_id, key, answer)
        runs.append([])
    return runs, ""  # the model makes no progress, or the faults do not end


BEGINS = ThreadStarted | RoleStarted | RoundStarted | ToolStarted
ENDS = ThreadEnded | RoleFinished | RoleStopped | ModelReplied | ModelFailed | ToolFinished
KINDS = {
    ThreadStarted: "thread", ThreadEnded: "thread",
    RoleStarted: "role", RoleFinished: "role", RoleStopped: "role",
    RoundStarted: "model", ModelReplied: "model", ModelFailed: "model",
    ToolStarted: "tool", ToolFinished: "tool",
}  # fmt: skip


def check_pairs(run: Sequence[Event]) -> None:
    """Each begin of a run has one end, which comes before the end of what it is a part of."""
    begun: dict[tuple[str, str, str], Event] = {}
    for event in run:
        if not isinstance(event, BEGINS | ENDS):
            continue
        at = KINDS[type(event)], event.thread, event.key
        if isinstance(event, BEGINS):
            assert at not in begun, f"{event} began before"
            begun[at] = event
        elif isinstance(event, ToolFinished) and event.skipped:
            assert at not in begun
        else:
            began = begun.pop(at, None)
            assert began is not None, f"{event} has no begin"
            if not isinstance(event, ThreadEnded | RoleFinished | RoleStopped):
                assert began.recorded == event.recorded, event
            inside = {"role": {"model", "tool"}, "thread": {"role", "model", "tool"}}
            left = [
                key for key in begun if key[1] == event.thread and key[0] in inside.get(at[0], ())
            ]
            assert not left, f"{left} have no end before {event}"
    assert not begun


def check_told_once(runs: Sequence[Sequence[Event]], store_failed: bool) -> None:
    """No call is told twice as new, and all faults are named."""
    new = Counter[tuple[str, int, str]]()
    for run in runs:
        for event in run:
            if isinstance(event, ModelReplied | ToolFinished) and not event.recorded:
                done = isinstance(event, ModelReplied) or event.error not in {
                    "cancelled", "suspended", "StoreError", "StoreFull",
                }  # fmt: skip
                new[event.thread, event.step, event.key] += done
            if isinstance(event, ToolFinished):
                raised = {"LookupError", "StoreError", "WorkflowError"}
                known = event.error in CALL_FAULTS | raised
                assert event.ok == (not event.error) or event.skipped, event
                assert event.ok or event.skipped or known, event
    twice = {key: times for key, times in new.items() if times > 1}
    if store_failed:  # what was only read was not on disk yet
        twice = {key: times for key, times in twice.items() if "llm" in key[2]}
    assert not twice


async def check_run(
    store: Store,
    scripts: Sequence[Sequence[Sequence[str]]],
    faults: list[str],
    fails_at: int,
) -> None:
    bench = Bench(scripts, faults)
    runs, thread_id = await run_to_the_end(store, bench, faults, fails_at)
    for run in runs:
        check_pairs(run)
    check_told_once(runs, store_failed=fails_at > 0)
    told = Usage()
    for run in runs:
        for event in run:
            if isinstance(event, ModelReplied) and not event.recorded:
                assert (event.provider, event.model, event.response_model) == (
                    "here", "m", "scripted",
                )  # fmt: skip
                told += Usage() if event.key.startswith("supervisor/") else event.usage
    if not thread_id:
        return
    stored = Usage()
    for part in (await read_tree(store, thread_id)).walk():
        for step in part.thread.steps:
            stored += step.record.usage
    assert told == stored, "whoever counts what is new gets what the steps say"


FAULTS = st.lists(st.sampled_from(["", "", "", "refuse", "crash"]), max_size=12)


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    scripts=st.tuples(SCRIPT, SCRIPT, SCRIPT),
    faults=FAULTS,
    fails_at=st.integers(0, 25),
    on_disk=st.booleans(),
)
async def test_each_begin_has_one_end_and_nothing_is_told_twice_as_new(
    tmp_path_factory: pytest.TempPathFactory,
    scripts: tuple[list[list[str]], list[list[str]], list[list[str]]],
    faults: list[str],
    fails_at: int,
    on_disk: bool,
) -> None:
    if not on_disk:
        await check_run(MemoryStore(), scripts, list(faults), fails_at)
        return
    folder: Path = tmp_path_factory.mktemp("pairs")
    async with open_store(folder / "store.sqlite3") as store:
        await check_run(store, scripts, list(faults), fails_at)


async def test_a_model_that_hangs_is_ended_by_the_cancellation() -> None:
    await check_run(MemoryStore(), ([["look"]], [], []), ["hang", ""], 0)
