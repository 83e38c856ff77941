"""Child workflows as adapters: a role that is carried out by a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from typing_extensions import TypeForm

from workflow_cas import Store
from workflow_execute._errors import RoleValueError, ThreadNotResumable
from workflow_execute._workflow import AnyWorkflow, ChildTask, Workflow
from workflow_execute.children._child import ChildResult, run_child
from workflow_execute.threads._read import StoredThread, read_thread
from workflow_protocol import (
    Resolved,
    RoleDefinition,
    RoleFn,
    SchemaMismatch,
    ThreadContext,
    ThreadId,
    current_work,
    expect_type,
    schema_of,
)

T = TypeVar("T")


def child_prompt(prompt: str, ctx: ThreadContext) -> str:
    """What a child gets if nothing else is said: the task, the role's prompt, and what it is told.

    That is what the transition to the role tells it, or else the latest step.
    """
    told = ctx.told
    if not told and ctx.steps:
        latest = ctx.steps[-1]
        failed = "" if latest.failure is None else ", which failed"
        told = f"The latest step, by {latest.role}{failed}:\n\n{latest.content}"
    return "\n\n".join(part for part in (ctx.start.prompt, prompt, told) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowAdapter:
    """An adapter whose roles are child threads. Made by `workflow_adapter`."""

    name: str
    """What the workflow is called where people see it, and where it is registered."""
    source: AnyWorkflow | Callable[[], AnyWorkflow] | None
    """`None` for the workflow that is registered under the name."""
    input: Callable[[str, ThreadContext], object]
    """Makes the child's input from the role's prompt and the thread."""
    convert: Callable[[ChildResult[Any]], object] | None
    """Makes the role's value from what the child came to; `None` takes its last value."""

    @property
    def workflow(self) -> AnyWorkflow | None:
        """What the children run; `None` for what is registered under the name."""
        return self.source() if callable(self.source) else self.source

    def child_workflow(self) -> AnyWorkflow | None:
        """See `RunsChildren`."""
        return self.workflow

    def fault_of(self, role: RoleDefinition[Any]) -> str:
        """See `CheckedAdapter`."""
        del role
        source = self.source
        if self.input is not child_prompt or source is None or callable(source):
            return ""
        wanted = source.definition.input
        if wanted is str:
            return ""
        return (
            f"the child workflow {self.name!r} takes an input of type {schema_of(wanted).title}; "
            "give workflow_adapter an `input`, a function of the role's prompt and the thread"
        )

    def __call__(self, prompt: str, schema: TypeForm[T]) -> RoleFn[T]:
        """See `AdapterFn`."""

        async def role(ctx: ThreadContext) -> T:
            task = ChildTask(workflow=self.workflow, input=self.input(prompt, ctx), name=self.name)
            done = await run_child(ctx, task)
            current_work().take(list(done.artifacts.values()))
            if self.convert is not None:
                return cast("T", self.convert(done))  # the engine validates what it gives
            try:
                value = done.read(schema)
            except SchemaMismatch as error:
                raise RoleValueError(
                    f"child thread {done.thread_id} ({self.name}) gave a value that does not fit "
                    f"the schema {schema_of(schema).title}; give the role the schema of the "
                    f"child's last role, or workflow_adapter a `convert`: {error}"
                ) from error
            await ctx.journal.note(Resolved(value=value, json=done.json))
            return value

        return role


def workflow_adapter(
    name: str,
    workflow: AnyWorkflow | Callable[[], AnyWorkflow] | None = None,
    *,
    input: Callable[[str, ThreadContext], object] = child_prompt,
    convert: Callable[[ChildResult[Any]], object] | None = None,
) -> WorkflowAdapter:
    """Give an adapter that runs a workflow as a child thread and takes its last value.

    The child works in the same workspace and draws from the same limits. If it fails, is suspended
    or cancelled, so is the parent thread; resuming that resumes the same child. What the child
    published is published with the role's step.

    Example:
        ```python
        poet = RoleDefinition(name="poet", system_prompt="Write a haiku.", schema=str)
        write = create_workflow(
            WorkflowDefinition(table={START: poet, poet: END}, result=poet),
            AdapterBinding(create_llm_adapter("default")),
        )
        part = RoleDefinition(name="part", system_prompt="The part about rain.", schema=str)
        run = create_workflow(
            WorkflowDefinition(table={START: part, part: END}, result=part),
            AdapterBinding(workflow_adapter("write", write)),
        )
        ```

    Args:
        name: what the workflow is called where people see it.
        workflow: what to run; a function of nothing where it isn't made yet, as in a recursion.
            Without it, what is registered under the name when the child begins: its bundle is
            recorded, and a resume and a replay take that one, whatever the name means then.
        input: makes the child's input from the role's prompt and the thread: text, or a value of
            the `input` type of its workflow. It must be the same
            each time the turn is carried out.
        convert: makes the role's value from what the child came to. Without it the child's last
            value has to fit the role's schema, and its return code has to be 0.
    """
    expect_type(name, str, "the name of the child", use='write workflow_adapter("name", workflow)')
    if workflow is not None and not callable(workflow):
        use = "give what create_workflow made"
        expect_type(workflow, Workflow, "the child's workflow", use=use)
    return WorkflowAdapter(name=name, source=workflow, input=input, convert=convert)


async def workflow_of_child(
    store: Store, workflow: AnyWorkflow, thread: StoredThread
) -> AnyWorkflow:
    """Find what a child thread runs, below the workflow of the thread that it has its bundle from.

    Args:
        store: holds the thread and those above it.
        workflow: what the thread's bundle gives. That is the workflow of the topmost thread, or of
            the nearest thread above, or this one, that runs a registered workflow.
        thread: any thread; one that is no child, or runs a registered workflow, runs the workflow
            itself.

    Raises:
        ThreadNotResumable: no `workflow_adapter` on the way down goes by the recorded name.
    """
    names: list[str] = []
    each = thread
    while each.start.parent_thread is not None and not each.start.registered:
        names.insert(0, each.start.workflow)
        each = await read_thread(store, ThreadId(each.start.parent_thread))
    for name in names:
        child = _child_workflow(workflow, name)
        if child is None:
            raise ThreadNotResumable(
                f"thread {thread.thread_id} is a child that runs {name!r}, but the parent workflow "
                "has no workflow_adapter of this name; resume the parent thread instead"
            )
        workflow = child
    return workflow


def workflow_below(workflow: AnyWorkflow, names: Iterable[str]) -> AnyWorkflow | None:
    """What a child runs, by the names on the way down; `None` where no adapter has one of them."""
    found: AnyWorkflow | None = workflow
    for name in names:
        found = _child_workflow(found, name) if found is not None else None
    return found


def _child_workflow(workflow: AnyWorkflow, name: str) -> AnyWorkflow | None:
    bound = workflow.adapters.values()
    adapters = [a for a in bound if isinstance(a, WorkflowAdapter) and a.name == name]
    return adapters[0].workflow if adapters else None
