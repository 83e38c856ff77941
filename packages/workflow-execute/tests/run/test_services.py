"""Observers: all hear everything, none harms the run, and one may name the trace of each run."""

from __future__ import annotations

from typing import TypeVar

import pytest
from typing_extensions import TypeForm

from workflow_cas import MemoryStore
from workflow_execute import Engine, TracingObserver, create_workflow, read_thread
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    Event,
    RoleDefinition,
    RoleFn,
    ThreadContext,
    ThreadEnded,
    ThreadId,
    ThreadStarted,
    WorkflowDefinition,
    schema_of,
)

T = TypeVar("T")

ROLE = RoleDefinition(name="role", system_prompt="", schema=int)
ONE_ROLE = WorkflowDefinition(table={START: ROLE, ROLE: END})


class Tracer:
    """Names a trace after the run that it is of, and raises where it is told to."""

    def __init__(self, *, broken: bool = False) -> None:
        self.heard: list[Event] = []
        self.broken = broken

    def __call__(self, event: Event) -> None:
        self.heard.append(event)

    def traceparent(self, thread: ThreadId) -> str:
        if self.broken:
            raise RuntimeError("no trace")
        return f"trace-{len(self.starts)}"

    @property
    def starts(self) -> list[ThreadStarted]:
        return [each for each in self.heard if isinstance(each, ThreadStarted)]


def failing_once(store: MemoryStore, seen: list[str]) -> AdapterBinding:
    """A role that fails the first time; it keeps what is recorded of the trace at that moment."""

    def adapter(prompt: str, schema: TypeForm[T]) -> RoleFn[T]:
        async def role(ctx: ThreadContext) -> T:
            seen.append((await read_thread(store, ctx.thread_id)).status.traceparent)
            if len(seen) == 1:
                raise RuntimeError("the first time")
            return schema_of(schema).restore(b"7")

        return role

    return AdapterBinding(adapter)


async def test_the_trace_of_a_run_is_recorded_at_once_and_told_to_the_next_run() -> None:
    store, seen, tracer = MemoryStore(), list[str](), Tracer()
    workflow = create_workflow(ONE_ROLE, failing_once(store, seen))
    engine = Engine(store, observer=[tracer])
    assert isinstance(tracer, TracingObserver)

    failed = await engine.start(workflow, "p")
    between = await read_thread(store, failed.thread_id)
    resumed = await engine.resume(workflow, failed.thread_id)

    assert (failed.state, resumed.state) == ("failed", "completed")
    assert seen == ["trace-1", "trace-2"]  # while the role is at work, so also if the process dies
    assert between.status.traceparent == "trace-1"
    assert [each.previous_trace for each in tracer.starts] == ["", "trace-1"]
    assert (await read_thread(store, failed.thread_id)).status.traceparent == "trace-2"


async def test_a_thread_that_is_stopped_without_an_owner_keeps_its_trace() -> None:
    store, tracer = MemoryStore(), Tracer()
    engine = Engine(store, observer=tracer)
    failed = await engine.start(create_workflow(ONE_ROLE, failing_once(store, [])), "p")

    await engine.cancel(failed.thread_id)

    stopped = (await read_thread(store, failed.thread_id)).status
    assert (stopped.state, stopped.traceparent) == ("cancelled", "trace-1")


async def test_an_observer_that_fails_harms_neither_the_run_nor_the_other_observers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def raises(event: Event) -> None:
        raise RuntimeError(f"bad observer at {type(event).__name__}")

    store, broken, sound = MemoryStore(), Tracer(broken=True), Tracer()
    seen = ["not the first time"]
    engine = Engine(store, observer=[raises, broken, sound])

    result = await engine.start(create_workflow(ONE_ROLE, failing_once(store, seen)), "p")

    assert result.state == "completed"
    assert seen[1:] == ["trace-1"]
    assert sound.heard == broken.heard
    assert isinstance(sound.heard[-1], ThreadEnded)
    assert "could not name the trace" in caplog.text
