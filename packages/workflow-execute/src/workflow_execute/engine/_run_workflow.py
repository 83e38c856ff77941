"""Running a workflow once, of which nothing remains: in async code, and in a script."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
import sniffio

from workflow_cas import MemoryStore
from workflow_execute._result import ThreadResult
from workflow_execute._workflow import Workflow
from workflow_execute.engine._engine import Engine
from workflow_execute.run._services import Observer

In = TypeVar("In")
Out = TypeVar("Out")


async def run_workflow(
    workflow: Workflow[In, Out],
    input: In,
    *,
    workspace: Path | None = None,
    observer: Observer | Sequence[Observer] | None = None,
) -> ThreadResult[Out]:
    """Run a workflow once on a store in memory, of which nothing remains.

    Example:
        ```python
        from uwf.examples.weather import run  # any workflow

        result = await run_workflow(run, "What do I wear in Rome?")
        advice = result.value
        ```
    """
    engine = Engine(MemoryStore(), observer=observer)
    return await engine.start(workflow, input, workspace=workspace)


def run_sync(
    workflow: Workflow[In, Out],
    input: In,
    *,
    workspace: Path | None = None,
    observer: Observer | Sequence[Observer] | None = None,
) -> ThreadResult[Out]:
    """Run a workflow once from plain code, as in a script: `run_workflow` without `await`.

    Raises:
        RuntimeError: an event loop runs here, as in an async function or a notebook.
    """
    try:
        sniffio.current_async_library()
    except sniffio.AsyncLibraryNotFoundError:
        run = partial(run_workflow, workflow, input, workspace=workspace, observer=observer)
        return anyio.run(run)
    raise RuntimeError(
        "`run_sync` can't be called where an event loop runs, as in an async function or a "
        "notebook; write `await run_workflow(...)` there"
    )
