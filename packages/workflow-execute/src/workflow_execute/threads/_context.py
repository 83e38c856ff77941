"""Stored threads as roles see them."""

from __future__ import annotations

from workflow_execute._errors import ThreadNotResumable
from workflow_execute._input import restored_input
from workflow_execute._workflow import AnyWorkflow
from workflow_execute.threads._read import StoredStep, StoredThread
from workflow_protocol import (
    RoleStep,
    StartStep,
    ThreadContext,
    ThreadId,
    WorkflowError,
    schema_of,
)


def context_of(stored: StoredThread, workflow: AnyWorkflow) -> ThreadContext:
    """Build the context of a stored thread, its values typed by the workflow's roles.

    Raises:
        ThreadNotResumable: the workflow has not the roles, or other schemas or another input.
    """
    try:
        restored_input(workflow, stored.prompt)
        steps = tuple(typed_step(step, workflow) for step in stored.steps)
    except KeyError as error:
        raise ThreadNotResumable(
            f"thread {stored.thread_id} does not fit this workflow, which has no role {error}"
        ) from error
    except WorkflowError as error:
        raise ThreadNotResumable(
            f"thread {stored.thread_id} does not fit this workflow: {error}"
        ) from error
    return ThreadContext(
        thread_id=stored.thread_id,
        start=StartStep(
            prompt=stored.prompt,
            workspace=stored.workspace,
            timestamp_ms=stored.start.at_ms,
            parent_state=stored.start.parent_state,
        ),
        steps=steps,
        depth=stored.start.depth,
        bundle_hash=stored.start.bundle,
    )


def typed_step(step: StoredStep, workflow: AnyWorkflow) -> RoleStep:
    """A stored step as roles see it."""
    role = workflow.definition.role(step.record.role)
    failure = step.failure
    return RoleStep(
        role=role.name,
        meta=schema_of(role.schema).restore(step.value) if failure is None else None,
        json=step.value if failure is None else b"",
        content=step.content,
        content_hash=step.content_hash,
        timestamp_ms=step.record.at_ms,
        child_threads=tuple(map(ThreadId, step.record.child_threads)),
        usage=step.record.usage,
        failure=failure,
        artifacts=step.record.artifacts,
    )
