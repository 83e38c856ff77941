"""Says which versions have changed since a thread began or a workflow was registered."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from uwf._errors import Failed
from uwf.terminal._output import Output
from workflow_execute import JournalMismatch
from workflow_register import Environment, changes_since


def tell_changes(output: Output, then: Environment | None, since: str) -> list[str]:
    """Warn in one line of other versions than those recorded, and return them.

    Args:
        then: what is recorded; nothing is told without it.
        since: what they were recorded at, such as `the thread began`.
    """
    changes = changes_since(then) if then is not None else []
    if changes:
        output.say(f"uwf: warning: since {since}, versions have changed: {', '.join(changes)}")
    return changes


@contextmanager
def naming_changes(changes: Sequence[str]) -> Generator[None]:
    """Name the versions that have changed where a turn doesn't come to the same as before.

    Raises:
        Failed: what is repeated asks for something else, and versions have changed.
    """
    try:
        yield
    except JournalMismatch as error:
        if not changes:
            raise
        advice = "Install the earlier ones to repeat it exactly"
        raise Failed(1, f"{error}. {name_changes(changes)}{advice}") from error


def name_changes(changes: Sequence[str]) -> str:
    """A sentence for an error, if versions have changed."""
    if not changes:
        return ""
    return f"Versions have changed since the thread began: {', '.join(changes)}. "
