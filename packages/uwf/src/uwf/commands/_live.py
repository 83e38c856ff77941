"""Runs a thread with an engine, shows it on the terminal, and says how to go on with it."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Awaitable, Callable, Generator, Sequence
from pathlib import Path
from typing import TextIO, cast

from uwf._overrides import Overrides
from uwf._settings import engine_settings, kept_files, rule_for_commands
from uwf.commands._hints import next_steps, resume_command
from uwf.terminal._ask import ask_on_terminal, can_ask
from uwf.terminal._loop import run_async
from uwf.terminal._output import Output, pretty
from uwf.terminal._screen import Screen
from uwf.terminal._style import printable
from uwf.terminal._view import progress_view
from uwf.tracing._observers import tracing_observers
from workflow_cas import Store, open_store
from workflow_execute import Asker, Engine, Observer, ThreadResult
from workflow_protocol import Event, RoleFinished, ThreadStarted
from workflow_register import config_path, find_home, keep_providers_open, store_path


def run_live(
    output: Output,
    go: Callable[[Engine, Store], Awaitable[ThreadResult]],
    *,
    overrides: Overrides,
    entry: Path | None = None,
) -> int:
    """Carry out what starts or resumes a thread, and return the exit code.

    Args:
        output: gets the value, or the events.
        go: starts or resumes the thread.
        overrides: what was set for this run alone.
        entry: the script or archive that it runs, if it was given by its path.
    """
    with tracing_observers(output.say) as tracers:
        return _run_live(output, go, tracers, overrides, entry)


def _run_live(
    output: Output,
    go: Callable[[Engine, Store], Awaitable[ThreadResult]],
    tracers: Sequence[Observer],
    overrides: Overrides,
    entry: Path | None,
) -> int:
    home = find_home()
    settings = engine_settings(home)
    limits = overrides.limit(settings.limits)

    async def main(observer: Observer, asker: Asker | None) -> ThreadResult:
        async with (
            rule_for_commands(settings.sandbox),
            open_store(store_path(home)) as store,
            keep_providers_open(),
        ):
            engine = Engine(
                store,
                locks=home / "locks",
                limits=limits,
                observer=[observer, *tracers],
                asker=asker,
                supervisor=settings.supervisor,
                supervise_every=settings.supervise_every,
                run_options=overrides.lines,
                **kept_files(home),
            )
            return await go(engine, store)

    asks = can_ask() and not output.json
    last_value, thread_id = "", ""
    broken: OSError | None = None
    screen = Screen(sys.stderr)
    stream = cast("TextIO", screen)
    # Standard output is for our own data, not for what an entry and its roles print.
    with (
        contextlib.redirect_stdout(stream),
        contextlib.redirect_stderr(stream),
        _show_warnings(output),
        progress_view(screen, live=not output.json) as view,
    ):

        def observe(event: Event) -> None:
            """Show an event. The thread goes on when nobody can read about it any more."""
            nonlocal last_value, thread_id, broken
            if isinstance(event, RoleFinished):
                last_value = event.value
            elif isinstance(event, ThreadStarted) and not event.parents:
                thread_id = event.thread
            try:
                if broken is None:
                    view.show(event)
                    output.record(event)
            except OSError as error:
                broken = error

        try:
            asker = ask_on_terminal(view) if asks else None
            with overrides.serve():
                result = run_async(lambda: main(observe, asker))
        except KeyboardInterrupt:
            if thread_id:
                again = resume_command(thread_id, models=overrides.model_words)
                output.say(f"To continue: `{again}`")
            raise
        except BaseExceptionGroup as group:
            raise _first_exception(group) from None
    if broken is not None:
        raise broken
    if result.state == "completed" and last_value and not output.json:
        print(printable(pretty(last_value)), flush=True)
    if output.traceback and result.traceback:
        output.say(result.traceback.rstrip())
    for line in next_steps(
        result, limits, config_path(home), entry=entry, models=overrides.model_words
    ):
        output.say(line)
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
