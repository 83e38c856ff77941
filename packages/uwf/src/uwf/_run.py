"""`run` and `resume`: a thread from its start, or from where it stopped, to its end."""

from __future__ import annotations

import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

import anyio

from uwf._errors import UsageError
from uwf._output import Output, pretty
from uwf._view import watching
from uwf._workflows import open_bundle
from workflow_cas import Store, content, open_store
from workflow_execute import (
    Engine,
    Limits,
    ThreadResult,
    Workflow,
    find_thread,
    read_thread,
)
from workflow_protocol import Event, RoleFinished
from workflow_register import (
    Bundle,
    HasDefinition,
    check_name,
    find_home,
    keep_providers_open,
    load_config,
    load_workflow,
    read_bundle,
    read_registered,
    store_path,
)


def run(output: Output, workflow: str, prompt: str, workspace: Path | None) -> int:
    """Start a thread of a registered workflow, an entry script or a bundle."""
    task = sys.stdin.read() if prompt == "-" else prompt
    if not task.strip():
        raise UsageError("the prompt is empty; say what is to be done")
    if workspace is not None and not workspace.is_dir():
        raise UsageError(f"the workspace {str(workspace)!r} is not a folder")

    from_path = _as_path(workflow)

    async def go(engine: Engine, store: Store) -> ThreadResult:
        if from_path is not None:
            bundle, name = open_bundle(from_path), from_path.stem
        else:
            bundle, name = await read_registered(store, check_name(workflow)), workflow
        archive = content(bundle.data)
        await store.commit([archive])
        return await engine.start(
            _load(bundle), task, workspace=workspace, name=name, bundle=archive.hash
        )

    return _run(output, go)


def resume(output: Output, prefix: str) -> int:
    """Go on with a thread, on the bundle that it began with."""

    async def go(engine: Engine, store: Store) -> ThreadResult:
        thread = await read_thread(store, await find_thread(store, prefix))
        if thread.start.bundle is None:
            raise UsageError(f"thread {thread.thread_id} has no bundle; resume it from Python")
        bundle = read_bundle((await store.get(thread.start.bundle)).data)
        return await engine.resume(_load(bundle), thread.thread_id)

    return _run(output, go)


def _run(output: Output, go: Callable[[Engine, Store], Awaitable[ThreadResult]]) -> int:
    home = find_home()
    limits = Limits(max_steps=load_config(home).limits.max_steps)

    async def main(observer: Callable[[Event], None]) -> ThreadResult | None:
        """Give the result, or `None` when SIGTERM ended the run."""
        result: ThreadResult | None = None
        async with anyio.create_task_group() as tasks:
            await tasks.start(_cancel_on_sigterm, tasks.cancel_scope)
            async with open_store(store_path(home)) as store, keep_providers_open():
                engine = Engine(store, locks=home / "locks", limits=limits, observer=observer)
                result = await go(engine, store)
            tasks.cancel_scope.cancel()
        return result

    last_value = ""
    with watching(sys.stderr) as show:

        def observe(event: Event) -> None:
            nonlocal last_value
            show(event)
            output.record(event)
            if isinstance(event, RoleFinished):
                last_value = event.value

        try:
            result = anyio.run(main, observe)
        except BaseExceptionGroup as group:
            raise _alone(group) from None
    if result is None:
        raise KeyboardInterrupt
    if result.state == "completed" and last_value and not output.json:
        print(pretty(last_value), flush=True)
    if result.state in {"failed", "suspended"}:
        output.say(f"`uwf resume {result.thread_id}` goes on from here")
    return result.return_code


def _alone(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The exception that task groups have wrapped, as the command has only one thing to say."""
    first = group.exceptions[0]
    if isinstance(first, BaseExceptionGroup):
        return _alone(cast("BaseExceptionGroup[BaseException]", first))
    return first


async def _cancel_on_sigterm(
    scope: anyio.CancelScope, *, task_status: anyio.abc.TaskStatus[None]
) -> None:
    """A polite end, such as `timeout` and service managers ask for, is recorded like Ctrl-C."""
    with anyio.open_signal_receiver(signal.SIGTERM) as signals:
        task_status.started()
        async for _ in signals:
            scope.cancel()


def _as_path(workflow: str) -> Path | None:
    """The path that a workflow is given by; `None` for a registered name."""
    path = Path(workflow)
    is_path = path.suffix in {".py", ".zip"} or path.name != workflow or path.is_file()
    return path if is_path else None


def _load(bundle: Bundle) -> Workflow:
    found: HasDefinition = load_workflow(bundle)
    if not isinstance(found, Workflow):
        raise UsageError("the entry's `run` was not made by workflow_execute.create_workflow")
    return found
