"""The observer that traces what the command runs; what it made is sent before the command ends."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from uwf.tracing._wanted import NotUsable, Wanted, wanted_by
from workflow_execute import Observer

if TYPE_CHECKING:
    from uwf.tracing._pipeline import Pipeline


@contextlib.contextmanager
def tracing_observers(say: Callable[[str], None]) -> Generator[list[Observer]]:
    """Give the observer that the environment asks for; at the end, send what it made.

    Nothing that goes wrong with it is raised: a run is worth more than its trace.

    Args:
        say: told one line, if something went wrong.
    """
    try:
        wanted = wanted_by(os.environ)
        opened = _open(wanted) if wanted is not None else None
    except NotUsable as error:
        say(f"uwf: no traces: {error}")
        opened = None
    except Exception as error:  # noqa: BLE001 - a variable that the SDK can't read, say
        say(f"uwf: no traces: {type(error).__name__}: {error}")
        opened = None
    if opened is None:
        yield []
        return
    if opened.complaint:
        say(f"uwf: OpenTelemetry: {opened.complaint}")
    try:
        yield [opened.observer]
    finally:
        if problem := opened.close():
            say(f"uwf: traces or metrics were not sent: {problem}")


def _open(wanted: Wanted) -> Pipeline | None:
    """Set OpenTelemetry up; `None` where the extra `otel` isn't installed."""
    if find_spec("workflow_otel") is None or find_spec("opentelemetry.sdk") is None:
        return None
    from uwf.tracing._pipeline import Pipeline

    return Pipeline(wanted)
