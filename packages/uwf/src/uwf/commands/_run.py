"""`run` and `thread resume`: a thread from its start, or from where it stopped, to its end."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import cast

from uwf._errors import UsageError
from uwf._settings import engine_settings, rule_for_commands
from uwf.commands._workflows import open_bundle
from uwf.terminal._ask import ask_on_terminal, can_ask
from uwf.terminal._loop import run_async
from uwf.terminal._output import Output, pretty, printable
from uwf.terminal._view import progress_view
from workflow_cas import Store, content, open_store
from workflow_execute import (
    Asker,
    Engine,
    JournalMismatch,
    ReplayedRequest,
    StoredThread,
    ThreadResult,
    Workflow,
    compare,
    find_thread,
    read_thread,
    workflow_of_child,
)
from workflow_protocol import Event, RoleFinished, WorkflowError
from workflow_register import (
    Bundle,
    HasDefinition,
    check_name,
    find_home,
    keep_providers_open,
    load_workflow,
    read_bundle,
    read_registered,
    store_path,
)


def run(output: Output, workflow: str, prompt: str, workspace: Path | None) -> int:
    """Start a thread of a registered workflow, an entry script or a bundle."""
    task = read_prompt(prompt)
    check_workspace(workspace)
    from_path = _as_path(workflow)
    folder = workspace or Path.cwd()  # before an entry is imported, which may change it

    async def go(engine: Engine, store: Store) -> ThreadResult:
        if from_path is not None:
            bundle = open_bundle(from_path)
            name = Path(bundle.manifest.entry).stem
        else:
            bundle, name = await read_registered(store, check_name(workflow)), workflow
        archive = content(bundle.data)
        await store.commit([archive])
        return await engine.start(
            import_workflow(bundle), task, workspace=folder, name=name, bundle=archive.hash
        )

    return _run(output, go)


def resume(
    output: Output, thread: str, *, fresh: bool, workspace: Path | None, bundle: Path | None
) -> int:
    """Go on with a thread, on the bundle and in the folder that it began with or in others."""
    other = open_bundle(bundle) if bundle is not None else None
    check_workspace(workspace)

    async def go(engine: Engine, store: Store) -> ThreadResult:
        found = await read_thread(store, await find_thread(store, thread))
        if workspace is None and not found.workspace.is_dir():
            raise UsageError(
                f"the workspace {str(found.workspace)!r} of thread {found.thread_id} is gone; "
                "create it again, or continue in another folder: "
                f"`uwf thread resume {found.thread_id} --workspace DIR`"
            )
        if other is None:
            workflow = await workflow_of(store, found)
            return await engine.resume(workflow, found.thread_id, fresh=fresh, workspace=workspace)
        archive = content(other.data)
        await store.commit([archive])
        result = await engine.resume(
            await workflow_of_child(store, import_workflow(other), found),
            found.thread_id,
            fresh=fresh,
            workspace=workspace,
            bundle=archive.hash,
        )
        if isinstance(result.error, JournalMismatch):
            await _report_mismatch(output, engine, found, result.error)
        return result

    return _run(output, go)


def check_workspace(workspace: Path | None) -> None:
    """Refuse a folder that is none.

    Raises:
        UsageError: it isn't there, or is something else.
    """
    if workspace is not None and not workspace.is_dir():
        raise UsageError(f"the workspace {str(workspace)!r} is not a folder; create it")


async def workflow_of(store: Store, thread: StoredThread) -> Workflow:
    """Load the workflow that a thread was run with.

    Raises:
        UsageError: it was run from Python, without a bundle.
        ThreadNotResumable: it is a child that no `workflow_adapter` of the bundle has.
    """
    if thread.start.bundle is None:
        raise UsageError(
            f"thread {thread.thread_id} was started from Python, not from a bundle; resume it there"
        )
    top = import_workflow(read_bundle((await store.get(thread.start.bundle)).data))
    return await workflow_of_child(store, top, thread)


async def _report_mismatch(
    output: Output, engine: Engine, thread: StoredThread, error: JournalMismatch
) -> None:
    """Say where a request differs from the recorded one, which the old bundle makes once more."""
    if error.now is None:
        return
    step, made = len(thread.steps), dict[str, bytes]()

    def keep(request: ReplayedRequest) -> None:
        if request.step == step:
            made[request.key] = request.data

    try:
        workflow = await workflow_of(engine.store, thread)
        await engine.replay(workflow, thread.thread_id, on_request=keep)
    except WorkflowError:
        return  # the mismatch itself is told anyway
    difference = compare(made.get(error.key, error.now), error.now)
    if difference is not None:
        output.say(f"uwf: {error.key}: {difference}")


def _run(output: Output, go: Callable[[Engine, Store], Awaitable[ThreadResult]]) -> int:
    home = find_home()
    settings = engine_settings(home)

    async def main(observer: Callable[[Event], None], asker: Asker | None) -> ThreadResult:
        async with (
            rule_for_commands(settings.sandbox),
            open_store(store_path(home)) as store,
            keep_providers_open(),
        ):
            engine = Engine(
                store,
                locks=home / "locks",
                limits=settings.limits,
                observer=observer,
                asker=asker,
                supervisor=settings.supervisor,
                supervise_every=settings.supervise_every,
            )
            return await go(engine, store)

    asks = can_ask() and not output.json
    last_value = ""
    broken: OSError | None = None
    # Standard output is for our own data, not for what an entry and its roles print.
    with (
        contextlib.redirect_stdout(sys.stderr),
        _show_warnings(output),
        progress_view(sys.stderr, live=not output.json) as view,
    ):

        def observe(event: Event) -> None:
            """Show an event. The thread goes on when nobody can read about it any more."""
            nonlocal last_value, broken
            if isinstance(event, RoleFinished):
                last_value = event.value
            try:
                if broken is None:
                    view.show(event)
                    output.record(event)
            except OSError as error:
                broken = error

        try:
            asker = ask_on_terminal(view) if asks else None
            result = run_async(lambda: main(observe, asker))
        except BaseExceptionGroup as group:
            raise _first_exception(group) from None
    if broken is not None:
        raise broken
    if result.state == "completed" and last_value and not output.json:
        print(printable(pretty(last_value)), flush=True)
    if result.cause == "question":
        for asking in result.waits_for or (result.thread_id,):
            output.say(f"To answer: `uwf thread answer {asking} --approve|--deny`")
    if result.state in {"failed", "suspended"}:
        hint = " (--fresh starts the unfinished turn again)" if result.state == "failed" else ""
        output.say(f"To continue: `uwf thread resume {result.thread_id}`{hint}")
    return result.return_code


@contextlib.contextmanager
def _show_warnings(output: Output) -> Generator[None]:
    """Show what the engine and the agents log while the block runs."""
    handler = _LineHandler(output)
    loggers = [logging.getLogger(name) for name in ("workflow_execute", "workflow_agent_react")]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)


class _LineHandler(logging.Handler):
    """Prints a log record, such as a supervisor that failed, as one line without a traceback."""

    def __init__(self, output: Output) -> None:
        super().__init__()
        self._output = output

    def emit(self, record: logging.LogRecord) -> None:
        """Show one record."""
        error = record.exc_info[1] if record.exc_info else None
        reason = f": {str(error) or type(error).__name__}" if error is not None else ""
        with contextlib.suppress(OSError):  # nobody can read it any more
            self._output.say(f"uwf: {record.getMessage()}{reason}")


def _first_exception(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The exception that task groups have wrapped, as the command has only one thing to say."""
    first = group.exceptions[0]
    if isinstance(first, BaseExceptionGroup):
        return _first_exception(cast("BaseExceptionGroup[BaseException]", first))
    return first


def read_prompt(prompt: str) -> str:
    """The task: the argument itself, or for `-` what standard input holds.

    Raises:
        UsageError: it is empty, or no text.
    """
    task = _read_standard_input() if prompt == "-" else prompt
    if not task.strip():
        raise UsageError("the prompt is empty; describe the task")
    return task


def _read_standard_input() -> str:
    if sys.stdin is None:
        raise UsageError("standard input is closed; give the prompt as an argument")
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeError as error:
        raise UsageError("the prompt is not valid UTF-8") from error


def _as_path(workflow: str) -> Path | None:
    """The path that a workflow is given by; `None` for a registered name, which has no dot."""
    path = Path(workflow)
    return path if path.suffix or path.name != workflow else None


def import_workflow(bundle: Bundle) -> Workflow:
    """Import the workflow of a bundle.

    Raises:
        UsageError: it is one of something else.
    """
    found: HasDefinition = load_workflow(bundle)
    if not isinstance(found, Workflow):
        raise UsageError("the entry's `run` was not made by workflow_execute.create_workflow")
    return found
