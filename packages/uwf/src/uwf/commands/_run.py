"""`run` and `thread resume`: a thread from its start, or from where it stopped, to its end."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

import anyio.to_thread

from uwf._errors import Failed, UsageError
from uwf._overrides import Overrides, read_overrides, serve_recorded
from uwf.commands._children import as_workflow, check_children
from uwf.commands._hints import resume_command
from uwf.commands._live import run_live
from uwf.commands._model import model_or_default, require_local_model
from uwf.commands._versions import name_changes, tell_changes
from uwf.commands._workflows import open_bundle, workflow_path
from uwf.terminal._output import Output
from workflow_cas import Store
from workflow_execute import (
    AnyWorkflow,
    Engine,
    JournalMismatch,
    ReplayedRequest,
    StoredThread,
    ThreadResult,
    check_tags,
    compare,
    find_thread,
    read_input,
    read_thread,
    workflow_of_child,
)
from workflow_protocol import Hash, WorkflowError
from workflow_reactor import LlmSource, NamedLlm, noting_models
from workflow_register import (
    Bundle,
    ConfiguredLlm,
    Environment,
    bundle_objects,
    check_name,
    environment_of,
    load_workflow,
    lookup,
    read_registered,
    read_stored_bundle,
)


def run(
    output: Output,
    workflow: str,
    prompt: str,
    *,
    workspace: Path | None,
    models: list[tuple[str, str]] | None,
    limits: list[tuple[str, float | None]] | None,
    tags: list[str],
    detach: bool = False,
) -> int:
    """Start a thread of a registered workflow, an entry script or a bundle."""
    task = read_prompt(prompt)
    check_workspace(workspace)
    _check_tags(tags)
    from_path = workflow_path(workflow)
    overrides = read_overrides(models, limits)
    if detach:
        from uwf.commands._detach import run_detached

        options = [*_words_of(overrides, workspace), *(f"--tag={tag}" for tag in tags)]
        return run_detached(output, ["run", *options, "--", workflow, "-"], given=task)
    folder = workspace or Path.cwd()  # before an entry is imported, which may change it

    async def go(engine: Engine, store: Store) -> ThreadResult:
        # Whether there is a model and its key is found out before there is a thread.
        if from_path is not None:
            bundle = open_bundle(from_path)
            name = Path(bundle.manifest.entry).stem
        else:
            record = await lookup(store, check_name(workflow))
            tell_changes(output, record.environment, f"{workflow} was registered")
            bundle, name = await read_registered(store, workflow), workflow
        with noting_models() as noted:
            imported = import_workflow(bundle)
            await check_children(store, imported)
        given = read_input(imported, await anyio.to_thread.run_sync(input_words, imported, task))
        models = _configured(noted)
        for each in [*overrides.check_models(models), *models]:
            check_model(each)
        return await engine.start(
            imported,
            given,
            workspace=folder,
            name=name,
            bundle=await store_bundle(store, bundle),
            tags=tags,
        )

    return run_live(output, go, overrides=overrides, entry=from_path)


def resume(
    output: Output,
    thread: str,
    *,
    fresh: bool,
    restore_files: bool,
    workspace: Path | None,
    bundle: Path | None,
    models: list[tuple[str, str]] | None,
    limits: list[tuple[str, float | None]] | None,
    detach: bool = False,
) -> int:
    """Go on with a thread, on the bundle and in the folder that it began with or in others."""
    other = open_bundle(bundle) if bundle is not None else None
    check_workspace(workspace)
    overrides = read_overrides(models, limits)
    if detach:
        from uwf.commands._detach import run_detached

        options = [*_words_of(overrides, workspace), *(["--fresh"] if fresh else [])]
        options += ["--restore-files"] if restore_files else []
        options += [] if bundle is None else [f"--bundle={bundle}"]
        return run_detached(output, ["thread", "resume", *options, "--", thread])

    async def go(engine: Engine, store: Store) -> ThreadResult:
        found = await read_thread(store, await find_thread(store, thread))
        if workspace is None and not found.workspace.is_dir():
            raise UsageError(
                f"the workspace {str(found.workspace)!r} of thread {found.thread_id} is gone; "
                "create it again, or continue in another folder: "
                f"`uwf thread resume {found.thread_id} --workspace DIR`"
            )
        changes: list[str] = []
        with noting_models() as noted:
            if other is None:
                workflow, environment = await workflow_of(store, found)
                changes = tell_changes(output, environment, "the thread began")
            else:
                workflow = await workflow_of_child(store, import_workflow(other), found)
        for each in overrides.check_models(_configured(noted)):
            check_model(each)
        try:
            return await engine.resume(
                workflow,
                found.thread_id,
                fresh=fresh,
                workspace=workspace,
                restore_files=restore_files,
                bundle=await store_bundle(store, other) if other is not None else None,
            )
        except JournalMismatch as error:
            if other is not None:
                await _report_mismatch(output, engine, found, error)
            again = resume_command(found.thread_id, bundle, models=overrides.model_words)
            raise Failed(
                1, f"{error}. {name_changes(changes)}{_way_on(found, overrides, again)}"
            ) from error

    return run_live(output, go, overrides=overrides, entry=bundle)


def _words_of(overrides: Overrides, workspace: Path | None) -> list[str]:
    """The options, as the command of a detached run is given them."""
    words = [word for line in overrides.lines for word in shlex.split(line)]
    return words if workspace is None else [*words, f"--workspace={workspace}"]


def _way_on(thread: StoredThread, overrides: Overrides, again: str) -> str:
    """What to do where the records of a turn are for other requests than it makes now."""
    earlier = thread.status.run_options
    ran_with = [each for each in earlier if each.startswith("--model ")]
    if ran_with and sorted(ran_with) != sorted(overrides.lines):
        before = " ".join([resume_command(thread.thread_id), *ran_with])
        as_before = f" To go on with its models of before: `{before}`."
    else:
        as_before = ""
    return f"The thread is as it was.{as_before} To start its turn again: `{again} --fresh`"


def _configured(noted: Iterable[LlmSource]) -> list[ConfiguredLlm]:
    """The models that the configuration has to serve, of those that an entry has named."""
    found = [each.find() if isinstance(each, NamedLlm) else each for each in noted]
    return [each for each in found if isinstance(each, ConfiguredLlm)]


def check_model(model: ConfiguredLlm) -> None:
    """Refuse to begin without a model that a role will need.

    Raises:
        ConfigError: it isn't configured, or its key isn't there.
        ModelAbsent: it is an embedded one that was not downloaded.
    """
    resolved = model.check()
    if resolved.kind == "local":
        require_local_model()
        from workflow_local_model import ModelAbsent, default_cache, is_present, model_path

        found, cache = model_or_default(resolved.model), default_cache()
        if not is_present(found, cache):
            raise ModelAbsent(found.name, model_path(found, cache))


def _check_tags(tags: list[str]) -> None:
    """Refuse what can't be a tag.

    Raises:
        UsageError: one can't.
    """
    try:
        check_tags(tags)
    except ValueError as error:
        raise UsageError(str(error)) from error


def input_words(workflow: AnyWorkflow, task: str) -> str:
    """The task, or where the workflow takes JSON, what the file of `@path` holds.

    Raises:
        UsageError: the file can't be read as text.
    """
    if workflow.definition.input is str or not task.startswith("@"):
        return task
    path = Path(task[1:])
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeError as error:
        raise UsageError(f"{path} is not valid UTF-8") from error


def check_workspace(workspace: Path | None) -> None:
    """Refuse a folder that is none.

    Raises:
        UsageError: it isn't there, or is something else.
    """
    if workspace is not None and not workspace.is_dir():
        raise UsageError(f"the workspace {str(workspace)!r} is not a folder; create it")


async def store_bundle(store: Store, bundle: Bundle) -> Hash:
    """Store a bundle that was imported here for a thread, which refers to it by this hash."""
    objects = bundle_objects(bundle, environment_of(bundle))
    await store.commit(objects)
    return objects[-1].hash


async def workflow_of(store: Store, thread: StoredThread) -> tuple[AnyWorkflow, Environment | None]:
    """Load the workflow that a thread was run with, and read what it ran under.

    Raises:
        UsageError: it was run from Python, without a bundle.
        ThreadNotResumable: it is a child that no `workflow_adapter` of the bundle has.
    """
    if thread.start.bundle is None:
        raise UsageError(
            f"thread {thread.thread_id} was started from Python, not from a bundle; resume it there"
        )
    bundle, environment = await read_stored_bundle(store, thread.start.bundle)
    return await workflow_of_child(store, import_workflow(bundle), thread), environment


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
        workflow, _ = await workflow_of(engine.store, thread)
        await engine.replay(workflow, thread.thread_id, on_request=keep, set_options=serve_recorded)
    except WorkflowError:
        return  # the mismatch itself is told anyway
    difference = compare(made.get(error.key, error.now), error.now)
    if difference is not None:
        output.say(f"uwf: {error.key}: {difference}")


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


def import_workflow(bundle: Bundle) -> AnyWorkflow:
    """Import the workflow of a bundle.

    Raises:
        UsageError: it is one of something else.
    """
    return as_workflow(load_workflow(bundle))
